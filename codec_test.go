package xstreamq

import "testing"

type byValue struct{}

func (byValue) Validate() error { return nil }

type byPointer struct{}

func (*byPointer) Validate() error { return nil }

// A type that is taken for bare is not asked to validate itself.
func TestBareTypes(t *testing.T) {
	t.Parallel()
	for name, got := range map[string]bool{
		"bytes": bareType[[]byte](), "int": bareType[int](), "struct": bareType[struct{ A int }](), "map": bareType[map[string]int](),
	} {
		if !got {
			t.Errorf("%s: asked although it cannot answer", name)
		}
	}
	for name, got := range map[string]bool{
		"value": bareType[byValue](), "pointer to value": bareType[*byValue](), "pointer": bareType[byPointer](),
		"a pointer that has it": bareType[*byPointer](), "any": bareType[any](), "interface": bareType[validator](),
	} {
		if got {
			t.Errorf("%s: never asked", name)
		}
	}
}
