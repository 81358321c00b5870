package engine

import "testing"

// What one read may bring is bounded in entries and in bytes, whoever asks for how many.
func TestReadsAreBounded(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]func(*Config){
		"handlers": func(c *Config) { c.Concurrency = 10_000 },
		"pulled":   func(c *Config) { c.Concurrency = 0 },
	} {
		s, _, _ := still(t, unused, more)
		s.wanted = 10_000
		for _, c := range []struct{ body, want int64 }{{0, firstRead}, {1, readEntries}, {64 << 10, 64}, {16 << 20, 1}} {
			s.speed.size.v.Store(c.body)
			if room := s.roomLocked(); room != int(c.want) {
				t.Errorf("%s: room for %d bodies of %d bytes, want %d", name, room, c.body, c.want)
			}
		}
	}
}
