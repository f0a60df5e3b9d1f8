package records_test

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"liqonet.io/liqonet/internal/records"
)

// maxGrowth is the number of bytes that decoding may allocate per byte of text. Shorter texts count as shortText bytes,
// because a YAML scanner reads a kilobyte ahead.
const (
	maxGrowth = 64
	shortText = 4 << 10
)

// decoders has Decode for each record type of this package.
var decoders = map[reflect.Type]func(string) error{}

func decoder[T records.Document]() {
	decoders[reflect.TypeFor[T]()] = func(text string) error {
		_, err := records.Decode[T](text)
		return err
	}
}

func init() {
	decoder[records.Fabric]()
	decoder[records.Peering]()
	decoder[records.Gateway]()
	decoder[records.Node]()
	decoder[records.Status]()
	decoder[records.Offer]()
}

// allocated returns the number of bytes that f allocates.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// checkGrowth decodes a text as the given type, or as each type if as is nil.
func checkGrowth(t *testing.T, text string, as reflect.Type) {
	t.Helper()
	for kind, decode := range decoders {
		if as != nil && as != kind {
			continue
		}
		if n, most := allocated(func() { _ = decode(text) }), maxGrowth*max(len(text), shortText); n > most {
			t.Errorf("%s: %d bytes allocated for %d bytes: want at most %d\n%.200s", kind, n, len(text), most, text)
		}
	}
}

// TestAliases: YAML aliases are rejected. A Lease with this text made every gateway of a cluster run out of memory.
func TestAliases(t *testing.T) {
	list := func(alias string) string { return "[" + strings.TrimSuffix(strings.Repeat(alias+",", 200), ",") + "]" }
	checkGrowth(t, fmt.Sprintf("version: 1\nd: %s\na: &a %s\nb: &b %s\nc: %s\n", list("x, x, x"), strings.Repeat("x", 12_000), list("*a"), list("*b")), nil)
	for _, text := range []string{"name: &a x", "name: !!str x", "name: !x x", "a: &a {version: 1}\n<<: *a", "<<: {name: x}", "name: *a"} {
		if _, err := records.Decode[records.Fabric]("version: 1\n" + text + "\n"); err == nil || !strings.Contains(err.Error(), "anchor") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// elements are the values that TestGrowth repeats in lists.
var elements = []string{`{}`, `null`, `1`, `""`, `[]`, `"10.0.0.0/8"`, `"10.0.0.1"`, `"x"`, `{"a":1}`, `{"name":"x"}`, `true`, `"\u0000"`}

// TestGrowth decodes texts of two lengths that take the most memory or time for their length.
func TestGrowth(t *testing.T) {
	texts, kinds := map[string]func(n int) string{}, map[string]reflect.Type{}
	add := func(name, head, body, tail string) {
		texts[name] = func(n int) string { return head + strings.Repeat(body, n/len(body)) + tail }
	}
	for _, body := range []string{
		"[", "{\"a\":", "[],", "- ", "-\n", "? ", "? a\n", "#\n", "# a\n", "---\n", "a ", "a\n", "\n", " ", "\t", "x:\n", "- a\n", "- {}\n", "- [a]\n",
		"&a ", "*a ", "!a ", "\"\\n\" ", "'", "\"", "|\n", ">\n a\n", "- |\n", "- #\n", "-\t", "{a,", "{a: ", "[a: b, ", "{? ", ",", ":", "::", ": ", "%a\n", "\xff", "\x00",
	} {
		add("raw "+body, "", body, "")
		add("after a version "+body, "version: 1\nlater: ", body, "")
		add("below a version "+body, "version: 1\nlater:\n  ", body, "")
	}
	texts["different fields"] = func(n int) string {
		var b strings.Builder
		b.WriteString(`{"version":1`)
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, `,"%d":1`, i)
		}
		return b.String() + "}"
	}
	texts["different lines"] = func(n int) string {
		var b strings.Builder
		b.WriteString("version: 1\n")
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, "%d:\n", i)
		}
		return b.String()
	}
	texts["indented"] = func(n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			b.WriteString(strings.Repeat(" ", i) + "a:\n")
		}
		return b.String()
	}
	for kind := range decoders {
		for _, path := range lists(kind, `{"version":1,`) {
			for _, e := range elements {
				for _, pad := range []string{"", strings.Repeat(" ", 6)} {
					head := path.head
					name := fmt.Sprint(kind, head, e, len(pad))
					kinds[name] = kind
					texts[name] = func(n int) string {
						var b strings.Builder
						b.WriteString(head)
						for i := 0; b.Len() < n; i++ {
							if i > 0 {
								b.WriteString(",")
							}
							if path.keyed {
								fmt.Fprintf(&b, `"a%d":`, i)
							}
							b.WriteString(e + pad)
						}
						return b.String() + path.tail
					}
				}
			}
		}
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{1<<14 - 1<<9, 1<<18 - 1<<9} {
				begin := time.Now()
				checkGrowth(t, text(n), kinds[name])
				if took := time.Since(begin); took > 2*time.Second {
					t.Errorf("%d bytes take %v", n, took)
				}
			}
		})
	}
}

// list is a list or a map field of a type, with the text before and after its elements.
type list struct {
	head, tail string
	keyed      bool
}

func lists(kind reflect.Type, head string) (all []list) {
	for _, f := range reflect.VisibleFields(kind) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || name == "" || f.Anonymous {
			continue
		}
		head := head + `"` + name + `":`
		if f.Type == reflect.TypeFor[time.Time]() || reflect.PointerTo(f.Type).Implements(reflect.TypeFor[interface{ UnmarshalText([]byte) error }]()) {
			continue
		}
		switch f.Type.Kind() {
		case reflect.Slice:
			all = append(all, list{head + "[", closing(head + "["), false})
			if f.Type.Elem().Kind() == reflect.Struct {
				all = append(all, lists(f.Type.Elem(), head+"[{")...)
			}
		case reflect.Map:
			all = append(all, list{head + "{", closing(head + "{"), true})
		case reflect.Struct:
			all = append(all, lists(f.Type, head+"{")...)
		}
	}
	return all
}

// closing returns the brackets that close those open in head.
func closing(head string) (tail string) {
	for _, c := range head {
		switch c {
		case '[':
			tail = "]" + tail
		case '{':
			tail = "}" + tail
		}
	}
	return tail
}

// TestOtherSeparators: YAML has line separators that JSON lacks, and may be UTF-16. A text whose values are separated
// by these takes no more memory than others and is rejected.
func TestOtherSeparators(t *testing.T) {
	const n = 1<<18 - 1<<9
	wide := func(text string, order binary.AppendByteOrder, mark uint16) string {
		b := order.AppendUint16(nil, mark)
		for _, unit := range utf16.Encode([]rune(text)) {
			b = order.AppendUint16(b, unit)
		}
		return string(b)
	}
	for name, element := range map[string]string{
		"next line": "-\u0085", "line separator": "-\u2028", "paragraph separator": "-\u2029", "keys": "?\u0085",
	} {
		t.Run(name, func(t *testing.T) {
			checkGrowth(t, "version: 1\nlater:\n"+strings.Repeat(element, n/len(element)), nil)
		})
	}
	for name, order := range map[string]binary.AppendByteOrder{"little endian": binary.LittleEndian, "big endian": binary.BigEndian} {
		for _, element := range []string{"-\n", "- a\n", "?\n", "? a\n"} {
			t.Run(fmt.Sprintf("%s %q", name, element), func(t *testing.T) {
				checkGrowth(t, wide("version: 1\nlater:\n"+strings.Repeat(element, n/len(element)/2), order, 0xfeff), nil)
			})
		}
	}
}
