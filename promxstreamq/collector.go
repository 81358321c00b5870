package promxstreamq

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/xstreamq/xstreamq"
)

// Option is for NewCollector.
type Option func(*Collector)

// Timeout bounds what one collection may take of Redis; default 5 s, which leaves room within Prometheus's own 10 s. What
// is not positive leaves the default.
func Timeout(d time.Duration) Option {
	return func(c *Collector) {
		if d > 0 {
			c.timeout = d
		}
	}
}

// CacheFor is how long a collection serves; default 5 s, <= 0 asks Redis with each scrape. It keeps several Prometheus
// servers from asking several times. Failures are not kept.
func CacheFor(d time.Duration) Option { return func(c *Collector) { c.cacheFor = d } }

// MaxGroups is the most groups that are shown, in the order of their names; default 1,000. The rest is left out, and
// xstreamq_incomplete says so. What is not positive leaves the default.
func MaxGroups(n int) Option {
	return func(c *Collector) {
		if n > 0 {
			c.maxGroups = n
		}
	}
}

// Collector shows what is stored, as Admin has it: a scrape reads Redis. When it cannot, xstreamq_up is 0 and nothing else is
// shown: no figure is older than the cache. Register it once in a registry.
type Collector struct {
	admin     *xstreamq.Admin
	timeout   time.Duration
	cacheFor  time.Duration
	maxGroups int

	mu    sync.Mutex
	kept  []prometheus.Metric
	until time.Time
}

// NewCollector makes a collector of all that the client's Admin sees: the streams and groups in the registry of its prefix.
func NewCollector(admin *xstreamq.Admin, opts ...Option) *Collector {
	c := &Collector{admin: admin, timeout: 5 * time.Second, cacheFor: 5 * time.Second, maxGroups: 1000}
	for _, o := range opts {
		if o != nil {
			o(c)
		}
	}
	return c
}

var (
	streamLabel = []string{"stream"}
	groupLabels = []string{"stream", "group"}

	descUp         = prometheus.NewDesc("xstreamq_up", "1 when the last collection could read Redis.", nil, nil)
	descIncomplete = prometheus.NewDesc("xstreamq_incomplete", "1 when some streams could not be read, or groups were left out.", nil, nil)
	descEntries    = prometheus.NewDesc("xstreamq_stream_entries", "Entries of the stream, history included.", streamLabel, nil)
	descDelayed    = prometheus.NewDesc("xstreamq_stream_delayed", "Messages published for later.", streamLabel, nil)
	descLag        = prometheus.NewDesc("xstreamq_group_lag", "Entries of the stream not yet read; absent when unknown.", groupLabels, nil)
	descPending    = prometheus.NewDesc("xstreamq_group_pending", "Messages in flight.", groupLabels, nil)
	descRetry      = prometheus.NewDesc("xstreamq_group_retry", "Messages due for another attempt, not yet read.", groupLabels, nil)
	descRetrying   = prometheus.NewDesc("xstreamq_group_retrying", "Messages that wait out their backoff.", groupLabels, nil)
	descDead       = prometheus.NewDesc("xstreamq_group_dead", "Dead letters.", groupLabels, nil)
	descPaused     = prometheus.NewDesc("xstreamq_group_paused", "1 when the group is paused.", groupLabels, nil)
	descOldest     = prometheus.NewDesc("xstreamq_group_oldest_seconds", "Age of the oldest message that waits or is in flight; 0 = none.", groupLabels, nil)
	descConsumers  = prometheus.NewDesc("xstreamq_group_consumers", "Consumers of the group, dead ones included until a sweep.", groupLabels, nil)
	descProcessed  = prometheus.NewDesc("xstreamq_group_processed_total", "Messages handled with success, by all workers.", groupLabels, nil)
	descFailed     = prometheus.NewDesc("xstreamq_group_failed_total", "Attempts that failed, by all workers.", groupLabels, nil)
	descBuried     = prometheus.NewDesc("xstreamq_group_dead_total", "Dead letters made, by all workers.", groupLabels, nil)
)

// Describe is a part of prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descUp, descIncomplete, descEntries, descDelayed, descLag, descPending, descRetry, descRetrying, descDead, descPaused,
		descOldest, descConsumers, descProcessed, descFailed, descBuried,
	} {
		ch <- d
	}
}

// Collect is a part of prometheus.Collector. Scrapes at the same time read once.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil || !time.Now().Before(c.until) {
		began := time.Now()
		if c.kept = c.read(); c.kept == nil {
			ch <- gauge(descUp, 0)
			return
		}
		c.until = began.Add(c.cacheFor)
	}
	for _, m := range c.kept {
		ch <- m
	}
}

// read is nil when Redis could not be read.
func (c *Collector) read() []prometheus.Metric {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	depths, err := c.admin.Depths(ctx)
	if ctx.Err() != nil || errors.Is(err, xstreamq.ErrUnavailable) || err != nil && len(depths) == 0 {
		return nil
	}
	incomplete := err != nil
	var out []prometheus.Metric
	groups, stream := 0, ""
	for _, d := range depths {
		if d.Stream != stream {
			stream = d.Stream
			out = append(out, gauge(descEntries, float64(d.Length), stream), gauge(descDelayed, float64(d.Delayed), stream))
		}
		if d.Group == "" {
			continue
		}
		if groups++; groups > c.maxGroups {
			incomplete = true
			break
		}
		out = append(out,
			gauge(descPending, float64(d.Pending), d.Stream, d.Group), gauge(descRetry, float64(d.Retry), d.Stream, d.Group),
			gauge(descRetrying, float64(d.Retrying), d.Stream, d.Group), gauge(descDead, float64(d.Dead), d.Stream, d.Group),
			gauge(descPaused, truth(d.Paused), d.Stream, d.Group), gauge(descOldest, d.Oldest.Seconds(), d.Stream, d.Group),
			gauge(descConsumers, float64(d.Consumers), d.Stream, d.Group))
		if d.Lag != nil {
			out = append(out, gauge(descLag, float64(*d.Lag), d.Stream, d.Group))
		}
		out = append(out, count(descProcessed, d.Totals.Processed, d), count(descFailed, d.Totals.Failed, d), count(descBuried, d.Totals.Dead, d))
	}
	return append(out, gauge(descUp, 1), gauge(descIncomplete, truth(incomplete)))
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func gauge(d *prometheus.Desc, v float64, labels ...string) prometheus.Metric {
	return constant(d, prometheus.GaugeValue, v, labels...)
}

func count(d *prometheus.Desc, v int64, of xstreamq.Depth) prometheus.Metric {
	return constant(d, prometheus.CounterValue, float64(v), of.Stream, of.Group)
}

func constant(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) prometheus.Metric {
	for i, l := range labels {
		labels[i] = strings.ToValidUTF8(l, "\uFFFD") // others' groups may have any name
	}
	return prometheus.MustNewConstMetric(d, kind, v, labels...)
}
