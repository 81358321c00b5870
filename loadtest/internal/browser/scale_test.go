package browser_test

import (
	"net/http/httptest"
	"testing"

	"github.com/xstreamq/xstreamq/dash"
	"github.com/xstreamq/xstreamq/loadtest/internal/scale"
	"github.com/xstreamq/xstreamq/loadtest/internal/server"
)

// A hundredth of what `make scale` has: every page is drawn, and the memory with fifty tabs is bounded. It runs alone.
func TestPagesOfALargeServer(t *testing.T) { //nolint:paralleltest // it measures
	srv, err := server.Start(t.TempDir(), "--save", "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := srv.Kill(); err != nil {
			t.Error(err)
		}
	}()
	w, err := scale.Fill(t.Context(), srv.Addr(), scale.Full.Part(100))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	d := dash.New(w.Admin(), dash.Config{})
	web := httptest.NewServer(d)
	defer func() {
		d.Close()
		web.CloseClientConnections()
		web.Close()
	}()
	times, err := chromium.Times(web.URL+"/", w.Pages(), 3)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, p := range times {
		if t.Logf("%-28s %v", p.Name, p.Best); p.Best <= 0 { // how long it may take is cmd/scale's to say, on a quiet machine
			t.Errorf("%s was not drawn", p.Name)
		}
		row, err := w.Page(t.Context(), p.Name, p.Asked)
		if err != nil {
			t.Error(err)
		}
		if len(p.Asked) > 0 && row.Commands > 0 {
			asked++
		}
	}
	if asked < 8 {
		t.Errorf("of %d pages only %d asked the server for anything", len(times), asked)
	}
	heap, err := scale.Watch(t.Context(), web.URL+"/", scale.Tabs)
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("%d KiB with %d tabs", heap>>10, scale.Tabs); heap == 0 || heap > scale.MostHeap {
		t.Errorf("%d tabs hold %d bytes", scale.Tabs, heap)
	}
}
