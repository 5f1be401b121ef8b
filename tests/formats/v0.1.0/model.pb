
tiny
xÿÿÿÿÿÿÿÿÿ
labelÿÿÿÿÿÿÿÿÿ"
w":		™wã@2'
matmul
Xx
Yw"
Outlogits2J
softmax_with_cross_entropy
Logitslogits
Labellabel"

Lossce2
mean
Xce"
Outloss2<
correct_count
Xlogits
Labellabel"
Outcorrect:

lossceB
top1correctlabelJlogits