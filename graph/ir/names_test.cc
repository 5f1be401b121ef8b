// Words of the enums, interned names and unique names.
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/dtype.h"
#include "graph/ir/attr.h"
#include "graph/ir/chunked_vector.h"
#include "graph/ir/decision.h"
#include "graph/ir/name_table.h"
#include "graph/ir/unique_names.h"
#include "gtest/gtest.h"

namespace halftone {
namespace {

TEST(EnumsTest, NamesReadBack) {
  for (int i = 1; i <= static_cast<int>(Reason::kCompressed); ++i) {
    const Reason reason = static_cast<Reason>(i);
    EXPECT_EQ(ReasonFromName(Name(reason)), reason);
  }
  for (int i = 0; i <= static_cast<int>(Role::kOptimize); ++i) {
    const Role role = static_cast<Role>(i);
    EXPECT_EQ(RoleFromName(Name(role)), role);
  }
  EXPECT_EQ(Name(Reason::kNone), "");
  EXPECT_FALSE(ReasonFromName("").has_value());
  EXPECT_EQ(Name(Reason::kKeepF32Slot), "KEEP_F32_SLOT");
  EXPECT_EQ(Name(Reason::kGradientOf), "GRADIENT_OF");
  EXPECT_EQ(Name(Role::kLossScale), "loss-scale");
  EXPECT_FALSE(RoleFromName("sideways").has_value());
}

TEST(EnumsTest, AttrKindsFollowTheVariant) {
  EXPECT_EQ(Name(KindOf(AttrValue(true))), "bool");
  EXPECT_EQ(Name(KindOf(AttrValue(int64_t{1}))), "int");
  EXPECT_EQ(Name(KindOf(AttrValue(1.0))), "float");
  EXPECT_EQ(Name(KindOf(AttrValue("x"))), "string");
  EXPECT_EQ(Name(KindOf(AttrValue(std::vector<int64_t>{}))), "ints");
  EXPECT_EQ(Name(KindOf(AttrValue(std::vector<double>{}))), "floats");
  EXPECT_EQ(Name(KindOf(AttrValue(std::vector<std::string>{}))), "strings");
  EXPECT_EQ(Name(KindOf(AttrValue(DType::kF16))), "dtype");
}

TEST(AttrTableTest, EqualListsAreOne) {
  AttrTable table;
  EXPECT_TRUE(table.Intern({}) == Attrs());
  EXPECT_TRUE(Attrs().empty());
  const Attrs f16 = table.Intern({{0, DType::kF16}});
  EXPECT_TRUE(f16 == table.Intern({{0, DType::kF16}}));
  EXPECT_FALSE(f16 == table.Intern({{0, DType::kF32}}));
  EXPECT_FALSE(f16 == table.Intern({{1, DType::kF16}}));
  EXPECT_FALSE(table.Intern({{0, int64_t{1}}}) == table.Intern({{0, true}}));
  EXPECT_EQ(f16.size(), 1);
  EXPECT_EQ(f16[0].second, AttrValue(DType::kF16));
}

// -0 prints otherwise than 0, and a NaN is equal to itself.
TEST(AttrTableTest, FloatsAreTheirBits) {
  AttrTable table;
  using Floats = std::vector<double>;
  EXPECT_FALSE(table.Intern({{0, 0.0}}) == table.Intern({{0, -0.0}}));
  EXPECT_FALSE(table.Intern({{0, Floats{1, 0.0}}}) ==
               table.Intern({{0, Floats{1, -0.0}}}));
  EXPECT_TRUE(table.Intern({{0, std::nan("")}}) ==
              table.Intern({{0, std::nan("")}}));
  EXPECT_TRUE(table.Intern({{0, Floats{std::nan("")}}}) ==
              table.Intern({{0, Floats{std::nan("")}}}));
}

TEST(ChunkedVectorTest, ElementsStayWhereTheyAre) {
  ChunkedVector<int> vector;
  std::vector<int*> places;
  for (int i = 0; i < 5000; ++i) {
    vector.Add() = i;
    places.push_back(&vector[i]);
  }
  ASSERT_EQ(vector.size(), 5000);
  const ChunkedVector<int>& constant = vector;
  for (int i = 0; i < 5000; ++i) {
    ASSERT_EQ(places[i], &constant[i]);
    ASSERT_EQ(*places[i], i);
  }
}

TEST(ChunkedVectorTest, HoldsMoreThanWasReserved) {
  for (const int reserved : {0, 1, 3, 8, 1 << 30}) {
    ChunkedVector<int> vector;
    vector.Reserve(reserved);
    std::vector<int*> places;
    for (int i = 0; i < 300; ++i) {
      vector.Add() = i;
      places.push_back(&vector[i]);
    }
    for (int i = 0; i < 300; ++i) {
      ASSERT_EQ(places[i], &vector[i]);
      ASSERT_EQ(*places[i], i);
    }
  }
}

TEST(AttrValueTest, KindsHashApart) {
  EXPECT_NE(HashOf(AttrValue(true)), HashOf(AttrValue(int64_t{1})));
  EXPECT_EQ(HashOf(AttrValue(int64_t{1})), HashOf(AttrValue(int64_t{1})));
}

TEST(AttrValueTest, ListsStayInOrder) {
  AttrList list;
  for (const int index : {3, 7, 1, 3}) SetAttrAt(index, int64_t{index}, &list);
  SetAttrAt(7, int64_t{9}, &list);
  const AttrList expected = {{1, int64_t{1}}, {3, int64_t{3}}, {7, int64_t{9}}};
  EXPECT_EQ(list, expected);
}

TEST(NameTableTest, InternsOnce) {
  NameTable names;
  const NameId a = names.Intern("a");
  const NameId empty = names.Intern("");
  EXPECT_EQ(names.Intern(std::string("a")), a);
  EXPECT_NE(a, empty);
  EXPECT_EQ(names.name(a), "a");
  EXPECT_EQ(names.name(empty), "");
  EXPECT_EQ(names.Find("a"), a);
  EXPECT_FALSE(names.Find("b").valid());
}

TEST(NameTableTest, AppendIsInternOfBoth) {
  NameTable names;
  const NameId x = names.Intern("x");
  const NameId grad = names.Append(x, ".grad");
  EXPECT_EQ(names.name(grad), "x.grad");
  EXPECT_EQ(names.Append(x, ".grad"), grad);
  EXPECT_EQ(names.Append(x, ".grad.1"), names.Intern("x.grad.1"));
  EXPECT_EQ(names.Append(x, ".grad"), grad);
  EXPECT_EQ(names.Append(x, ""), x);
  EXPECT_EQ(names.Append(names.Intern(""), "x"), x);
}

// However a name is come by, it is one: as a text, piece by piece, among many
// of its base, with dots where no word is.
TEST(NameTableTest, OneNamePerText) {
  NameTable names;
  std::set<std::string> texts = {"", ".", "..", ".a", "a.", "a..b", ".a.b"};
  std::string deep = "d";
  for (int i = 0; i < 12; ++i) {
    // Dots in all places of a long suffix, and what is next to them in ASCII.
    std::string suffix(12, i % 2 == 0 ? '-' : '/');
    suffix[i] = '.';
    texts.insert("long." + suffix);
  }
  for (int i = 0; i < 12; ++i) texts.insert(deep += absl::StrCat(".", i));
  for (int i = 0; i < 10; ++i) {
    for (const char* base : {"a", "a.b", ".a"}) {
      texts.insert(absl::StrCat(base, ".x", i));
    }
  }
  std::map<std::string, NameId> ids;
  for (const std::string& text : texts) {
    ids[text] = names.Intern(text);
    EXPECT_EQ(names.name(ids[text]), text);
  }
  for (const std::string& text : texts) {
    EXPECT_EQ(names.Find(text), ids[text]) << text;
    for (size_t at = 0; at <= text.size(); ++at) {
      const NameId base = names.Intern(text.substr(0, at));
      EXPECT_EQ(names.Append(base, text.substr(at)), ids[text]) << text << at;
    }
    EXPECT_FALSE(names.Find(text + ".no").valid()) << text;
  }
}

TEST(NameTableTest, ViewsStayValid) {
  NameTable names;
  const absl::string_view first = names.name(names.Intern("first"));
  const std::string huge(1 << 20, 'x');
  const NameId long_name = names.Intern(huge);
  for (int i = 0; i < 20000; ++i) {
    const std::string name = absl::StrCat("name.", i);
    ASSERT_EQ(names.name(names.Intern(name)), name);
  }
  EXPECT_EQ(first, "first");
  EXPECT_EQ(names.name(long_name), huge);
  EXPECT_EQ(names.name(names.Find("name.12345")), "name.12345");
}

class UniqueNamesTest : public ::testing::Test {
 protected:
  std::string Take(absl::string_view base) {
    const NameId id =
        names_.Find(table_.Intern(base), table_, [this](NameId n) {
          return used_.count(std::string(table_.name(n))) > 0;
        });
    const std::string name(table_.name(id));
    used_.insert(name);
    return name;
  }
  void Drop(const std::string& name) {
    used_.erase(name);
    names_.Release(table_.Intern(name), table_);
  }
  NameTable table_;
  UniqueNames names_;
  std::set<std::string> used_;
};

TEST_F(UniqueNamesTest, TakesTheSmallestFree) {
  EXPECT_EQ(Take("x"), "x");
  EXPECT_EQ(Take("x"), "x.1");
  EXPECT_EQ(Take("x"), "x.2");
  EXPECT_EQ(Take("x.1"), "x.1.1");
  EXPECT_EQ(Take("y"), "y");
  used_.insert("x.3");
  EXPECT_EQ(Take("x"), "x.4");
}

TEST_F(UniqueNamesTest, ReleasedNamesComeBackSmallestFirst) {
  for (int i = 0; i < 10; ++i) Take("x");
  Drop("x.7");
  Drop("x.3");
  Drop("x.5");
  used_.insert("x.3");  // given directly by somebody
  EXPECT_EQ(Take("x"), "x.5");
  EXPECT_EQ(Take("x"), "x.7");
  EXPECT_EQ(Take("x"), "x.10");
  Drop("x");
  EXPECT_EQ(Take("x"), "x");
}

TEST_F(UniqueNamesTest, ReleaseIgnoresOtherNames) {
  Take("x");
  Take("x");
  for (const char* name :
       {"x.", "x.01", "x.0", "x.-1", "x.99999999999", "x.7y", ".", "", "no"}) {
    names_.Release(table_.Intern(name), table_);
  }
  EXPECT_EQ(Take("x"), "x.2");
}

// The result depends on the names in use alone.
TEST_F(UniqueNamesTest, ForgettingTheHistoryChangesNothing) {
  for (int i = 0; i < 50; ++i) Take("x");
  for (int i = 49; i > 0; i -= 3) Drop(absl::StrCat("x.", i));
  names_ = UniqueNames();
  const std::string fresh = Take("x");
  Drop(fresh);
  EXPECT_EQ(Take("x"), fresh);
  EXPECT_EQ(fresh, "x.1");
}

TEST_F(UniqueNamesTest, ManyOfOneBaseAreNotQuadratic) {
  for (int i = 0; i < 200000; ++i) Take("x");
  // A pass that replaces each by two.
  for (int i = 1; i < 100000; ++i) {
    Drop(absl::StrCat("x.", i));
    Take("x");
    Take("x");
  }
  EXPECT_EQ(used_.size(), 200000 + 99999);
}

}  // namespace
}  // namespace halftone
