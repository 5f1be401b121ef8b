#include "tools/report/graph_page.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "graph/base/display.h"

namespace halftone {
namespace tools {
namespace {

// A browser turns text around as a terminal does.
void MakePrintable(nlohmann::json* json) {
  if (json->is_string()) {
    *json = PrintableName(json->get_ref<const std::string&>());
  } else if (json->is_structured()) {
    for (nlohmann::json& member : *json) MakePrintable(&member);
  }
}

}  // namespace

const char kGraphStyle[] = R"(
#view{position:relative;max-height:70vh;overflow:auto;border:1px solid #9996}
#rows{position:relative}#rows svg{position:absolute;left:0;width:100%;
 pointer-events:none}#rows svg .mark{pointer-events:all}
.row{position:absolute;left:0;right:0;height:24px;display:grid;
 grid-template-columns:150px 1fr 1fr 110px}
.box{margin:2px 4px;padding:0 6px;overflow:hidden;white-space:nowrap;
 text-overflow:ellipsis;border-radius:4px;cursor:pointer;
 font:12px/20px ui-monospace,monospace;color:inherit;border:0;text-align:left}
.fold{grid-column:2/4;background:#8882}.hit{outline:2px solid #d90}
.chosen{outline:2px solid #1f6fb4}.half{display:flex;min-width:0}
.half .box{flex:1 1 0;min-width:0}
#detail{font-size:13px;min-height:8em;white-space:pre-wrap;
 font-family:ui-monospace,monospace;border:1px solid #9996;padding:.5em}
.edge{fill:none;stroke:#8889}.edge.to-low{stroke:#2b9a2b}
.edge.to-f32{stroke:#e0750a}.edge.lit{stroke:#1f6fb4;stroke-width:2}
.mark.low{fill:#2b9a2b}.mark.f32{fill:#e0750a}
.changed{box-shadow:inset 5px 0 #b03ab0}.rechosen{box-shadow:inset 5px 0 #999}
.added{box-shadow:inset 5px 0 #1f6fb4;font-weight:bold}
.removed{box-shadow:inset 5px 0 #d22;text-decoration:line-through}
.edge.come{stroke:#1f6fb4;stroke-width:2}.mark.come{stroke:#1f6fb4;stroke-width:2}
.edge.gone{stroke:#d22;stroke-dasharray:4 3}
.mark.gone{fill:none;stroke:#d22;stroke-width:2}
.sent{grid-column:3/4;background:#88f3}.edge.sent{stroke:#66b}
.key{display:inline-block;margin:2px 6px 2px 0;padding:0 6px 0 10px}
)";

const char kGraphScript[] = R"(
const G=JSON.parse(document.getElementById('graph').textContent),H=24;
const text=i=>G.strings[i],$=id=>document.getElementById(id);
const name=o=>o[0],precision=o=>text(o[2]);
// Of two programs: what differs is marked.
const DIFF=G.before_file!==undefined,SIGN=['','~ ','~ ','+ ','- '];
const MARK=['','changed','rechosen','added','removed'];
const WORD=['','precision changed','reason changed','added','removed'];
const change=o=>o[9]||0,edgeMark=n=>n===3?' come':n===4?' gone':'';
G.ops.forEach(o=>o[7].forEach(e=>{if(e[1]===null)e[1]=undefined;}));
const make=(tag,cls,words)=>{const e=document.createElement(tag);
 if(cls)e.className=cls;if(words!==undefined)e.textContent=words;return e;};
const shape=c=>c==='f16'||c==='bf16'||c==='f32'?c:'other';
const low=p=>p==='f16'||p==='bf16';
const bytes=n=>{const u=['B','KiB','MiB','GiB','TiB'];let k=0;
 while(n>=1024&&k<4){n/=1024;++k;}return (k?n.toFixed(1):n)+' '+u[k];};
// Backward ops of each forward op; ops of neither have rows of their own.
const gradients=G.ops.map(()=>[]);
G.ops.forEach((o,i)=>{if(o[6]>=0)gradients[o[6]].push(i);});
const main=G.ops.map((o,i)=>i).filter(i=>G.ops[i][6]<0);
const readers=G.ops.map(()=>[]);
G.ops.forEach((o,i)=>o[7].forEach(e=>{
 if(typeof e[0]==='number')readers[e[0]].push(i);}));
// Scopes as a tree; a folded one is a row.
const root={path:'',kids:[],scopes:new Map(),count:0,low:0,other:0};
for(const i of main){
 const parts=name(G.ops[i]).split('/');parts.pop();
 let at=root;at.count++;
 for(const part of parts){
  let next=at.scopes.get(part);
  if(!next||at.kids[at.kids.length-1]!==next){
   next={path:at.path+part+'/',label:part,kids:[],scopes:new Map(),count:0,low:0,
    other:0,open:main.length<=60};
   at.scopes.set(part,next);at.kids.push(next);}
  at=next;at.count++;if(low(precision(G.ops[i])))at.low++;
  if([i,...gradients[i]].some(g=>change(G.ops[g])))at.other++;}
 at.kids.push(i);}
// What ranks send each other, below the ops: who makes what is sent.
const makers=new Map(),senders=G.collectives.map(()=>[]);
G.ops.forEach((o,i)=>o[8].forEach(v=>makers.set(v[0],i)));
const sentBy=G.ops.map(()=>[]);
G.collectives.forEach((c,k)=>c[4].forEach(v=>{const i=makers.get(v);
 if(i!==undefined&&!senders[k].includes(i)){senders[k].push(i);sentBy[i].push(k);}}));
let rows=[],rowOf=new Map(),sentRow=[],hits=[],hit=-1,chosen=-1,sent=-1;
const spread=(node,depth)=>{for(const kid of node.kids){
 if(typeof kid==='number'){rowOf.set(kid,rows.length);
  for(const g of gradients[kid])rowOf.set(g,rows.length);
  rows.push({op:kid,depth});continue;}
 const row=rows.length;rows.push({scope:kid,depth});
 if(kid.open)spread(kid,depth+1);else cover(kid,row);}};
const cover=(node,row)=>{for(const kid of node.kids){
 if(typeof kid!=='number'){cover(kid,row);continue;}
 rowOf.set(kid,row);for(const g of gradients[kid])rowOf.set(g,row);}};
const layOut=()=>{rows=[];rowOf=new Map();spread(root,0);
 sentRow=G.collectives.map((c,k)=>rows.push({sent:k,depth:0})-1);
 $('rows').style.height=rows.length*H+'px';draw();};
const castText=k=>{const c=G.casts[k];return c[0]+': '+text(c[1])+' to '+
 text(c[2])+', '+bytes(c[3])+' per step, '+text(c[4])+'; '+text(c[5])+
 (c[6]?', '+WORD[c[6]]:'');};
const boxOf=i=>{const o=G.ops[i];
 const b=make('button','box '+shape(precision(o)),SIGN[change(o)]+name(o)+'  '+text(o[1]));
 if(change(o))b.classList.add(MARK[change(o)]);
 b.title=name(o)+'\n'+text(o[1])+' in '+precision(o)+'\n'+text(o[5])+'\n'+
  (o[10]&&text(o[10])?'was '+text(o[10])+'\n':'')+
  o[8].map(v=>v[0]+' '+text(v[1])).join('\n');
 if(hits.includes(i))b.classList.add('hit');
 if(i===chosen)b.classList.add('chosen');
 b.onclick=()=>choose(i);return b;};
const sentText=c=>text(c[1])+' '+text(c[2])+', '+bytes(c[3])+', '+c[4].length+
 (c[4].length===1?' value':' values');
const sentBox=k=>{const c=G.collectives[k];
 const b=make('button','box sent',sentText(c));b.title=c[0];
 if(k===sent)b.classList.add('chosen');
 b.onclick=()=>{sent=k;chosen=-1;$('detail').textContent=[c[0]+'   '+sentText(c),
  ...c[4].map(v=>'sends     '+v+(makers.has(v)?'   of '+
   name(G.ops[makers.get(v)]):''))].join('\n');draw();};return b;};
const draw=()=>{
 const view=$('view'),from=Math.max(0,Math.floor(view.scrollTop/H)-5);
 const to=Math.min(rows.length,from+Math.ceil(view.clientHeight/H)+10);
 const page=document.createDocumentFragment();
 for(let r=from;r<to;++r){
  const row=rows[r],e=make('div','row');e.style.top=r*H+'px';
  e.append(make('span'));
  if(row.scope){const s=row.scope;
   const b=make('button','box fold',(s.open?'\u25be ':'\u25b8 ')+s.label+'  '+
    s.count+' ops, '+s.low+' low'+(s.other?', '+s.other+' differ':''));
   if(s.other)b.classList.add('changed');
   b.style.marginLeft=4+row.depth*12+'px';
   b.onclick=()=>{s.open=!s.open;layOut();};e.append(b);
  }else if(row.sent!==undefined){e.append(sentBox(row.sent));
  }else{
   const b=boxOf(row.op);b.style.marginLeft=4+row.depth*12+'px';
   const half=make('span','half');
   for(const g of gradients[row.op])half.append(boxOf(g));
   e.append(b,half);}
  page.append(e);}
 page.append(edges(from,to,view.clientWidth));
 $('rows').replaceChildren(page);};
// Those that touch a row in sight: forward ones left, backward ones right.
const edges=(from,to,width)=>{
 const ns=$('ns').namespaceURI;
 const svg=document.createElementNS(ns,'svg');
 svg.style.top=from*H+'px';svg.setAttribute('height',(to-from)*H);
 const seen=new Set(),y=r=>(r-from)*H+H/2;
 // From row to row; nothing where it is there already.
 const curve=(a,b,back,key)=>{
  if(a===undefined||b===undefined||a===b||seen.has(key))return;
  seen.add(key);
  const reach=Math.min(130,10+7*Math.sqrt(Math.abs(a-b)));
  const x=back?width-112:150,side=back?1:-1;
  const p=document.createElementNS(ns,'path');
  p.setAttribute('d','M'+x+' '+y(a)+'C'+(x+side*reach)+' '+y(a)+' '+
   (x+side*reach)+' '+y(b)+' '+x+' '+y(b));
  return [p,x,y(b)];};
 const send=(i,k)=>{
  const drawn=curve(rowOf.get(i),sentRow[k],true,'sent'+i+','+k);if(!drawn)return;
  drawn[0].setAttribute('class','edge sent'+(k===sent||i===chosen?' lit':''));
  svg.append(drawn[0]);};
 const line=(i,e)=>{
  if(typeof e[0]!=='number')return;
  const drawn=curve(rowOf.get(e[0]),rowOf.get(i),G.ops[i][6]>=0,
   e[0]+','+i+','+e[1]);
  if(!drawn)return;
  const [p,x,end]=drawn;
  let cls='edge';
  if(e[1]!==undefined){const c=G.casts[e[1]];
   cls+=low(text(c[2]))?' to-low':' to-f32';
   p.setAttribute('stroke-width',1+Math.log10(1+c[3])/3);}
  cls+=edgeMark(e[2]);
  if(i===chosen||e[0]===chosen)cls+=' lit';
  p.setAttribute('class',cls);svg.append(p);
  if(e[1]===undefined)return;
  const c=G.casts[e[1]],m=document.createElementNS(ns,'circle');
  m.setAttribute('cx',x);m.setAttribute('cy',end);
  m.setAttribute('r',2+Math.log10(1+c[3])/2);
  m.setAttribute('class','mark '+(low(text(c[2]))?'low':'f32')+
   edgeMark(c[6]||e[2]));
  const t=document.createElementNS(ns,'title');t.textContent=castText(e[1]);
  m.append(t);svg.append(m);};
 const around=i=>{for(const e of G.ops[i][7])line(i,e);
  for(const r of readers[i])for(const e of G.ops[r][7])if(e[0]===i)line(r,e);
  for(const k of sentBy[i])send(i,k);};
 for(let r=from;r<to;++r){
  if(rows[r].scope)continue;
  const k=rows[r].sent;
  if(k!==undefined){for(const i of senders[k])send(i,k);continue;}
  around(rows[r].op);for(const g of gradients[rows[r].op])around(g);}
 return svg;};
const choose=i=>{chosen=i;sent=-1;const o=G.ops[i],lines=[];
 lines.push(name(o)+'   '+text(o[1])+', '+text(o[3])+', runs in '+precision(o)+
  (change(o)?', '+WORD[change(o)]:''));
 const reason=text(o[5]).split(/[ ;]/)[0];
 lines.push('why       '+text(o[5]),'rule      '+(G.rules[reason]||''));
 if(o[10]&&text(o[10]))lines.push('was       '+text(o[10]));
 if(o[4])lines.push('line      '+(change(o)===4?G.before_file:G.file)+':'+o[4]);
 for(const e of o[7]){
  const n=typeof e[0]==='number'?name(G.ops[e[0]]):e[0];
  lines.push('reads     '+(e[2]?SIGN[e[2]]:'')+n+
   (e[1]===undefined?'':'   through '+castText(e[1])));}
 for(const v of o[8])lines.push('makes     '+v[0]+' '+text(v[1]));
 if(readers[i].length)lines.push('read by   '+
  readers[i].map(r=>name(G.ops[r])).join(' '));
 for(const k of sentBy[i])lines.push('sent by   '+G.collectives[k][0]+'   '+
  sentText(G.collectives[k]));
 lines.push('more      halftone explain MODEL '+name(o));
 $('detail').textContent=lines.join('\n');draw();};
const unfold=i=>{
 const path=name(G.ops[G.ops[i][6]>=0?G.ops[i][6]:i]);
 const open=node=>{for(const kid of node.kids)
  if(typeof kid!=='number'&&path.startsWith(kid.path)){kid.open=true;open(kid);}};
 open(root);layOut();};
const goTo=i=>{if(rows[rowOf.get(i)].scope)unfold(i);
 $('view').scrollTop=Math.max(0,rowOf.get(i)*H-$('view').clientHeight/2);choose(i);};
$('find').addEventListener('input',()=>{
 const t=$('find').value.toLowerCase();hit=-1;
 hits=t===''?[]:G.ops.map((o,i)=>i).filter(i=>(name(G.ops[i])+' '+
  text(G.ops[i][1])+' '+precision(G.ops[i])+' '+text(G.ops[i][5])+' '+
  WORD[change(G.ops[i])])
  .toLowerCase().includes(t));
 $('found').textContent=t===''?'':hits.length+' found; Enter: the next';draw();});
$('find').addEventListener('keydown',e=>{
 if(e.key!=='Enter'||hits.length===0)return;
 hit=(hit+1)%hits.length;goTo(hits[hit]);});
$('all').addEventListener('click',()=>{const set=node=>{for(const kid of node.kids)
 if(typeof kid!=='number'){kid.open=!all;set(kid);}};
 const all=rows.every(r=>!r.scope||r.scope.open);set(root);layOut();});
if(DIFF)$('next').addEventListener('click',()=>{
 const all=G.ops.map((o,i)=>i).filter(i=>change(G.ops[i]));
 if(all.length)goTo(all.find(i=>i>chosen)??all[0]);});
$('view').addEventListener('scroll',()=>requestAnimationFrame(draw));
addEventListener('resize',draw);
layOut();
)";

const char kPrecisionLegend[] =
    "<span class=\"f16\">f16, bf16</span> <span class=\"f32\">f32</span>";

std::string GraphHtml(nlohmann::json graph, absl::string_view legend) {
  MakePrintable(&graph);
  // In a script element nothing is an entity, and only "</" and "<!" end or
  // change it.
  const std::string json =
      absl::StrReplaceAll(graph.dump(-1, ' ', /*ensure_ascii=*/false,
                                     nlohmann::json::error_handler_t::replace),
                          {{"<", "\\u003c"}});
  return absl::StrCat(
      "<p><input id=\"find\" placeholder=\"find an op, type, precision or "
      "reason\" size=\"40\"> <button id=\"all\">fold or unfold all</button> ",
      legend,
      " <span id=\"found\"></span><svg id=\"ns\" width=\"0\" "
      "height=\"0\"></svg></p>\n",
      "<div id=\"view\"><div id=\"rows\"></div></div>\n",
      "<div id=\"detail\">forward ops left, their backward ops right; marks "
      "are "
      "casts, as large as they have bytes; below, what ranks send each other. "
      "Click an op for why it is as it "
      "is.</div>\n",
      "<script type=\"application/json\" id=\"graph\">", json, "</script>\n");
}

}  // namespace tools
}  // namespace halftone
