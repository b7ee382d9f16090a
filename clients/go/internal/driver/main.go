// The driver around this client, as the page checking-clients.md of the specification describes drivers.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"

	sidecar "contextsidecar"
)

type line struct {
	Do        string                     `json:"do"`
	ID        string                     `json:"id"`
	Method    string                     `json:"method"`
	Params    json.RawMessage            `json:"params"`
	Target    string                     `json:"target"`
	TimeoutMS int                        `json:"timeoutMs"`
	Answers   map[string]json.RawMessage `json:"answers"`
	Sources   []string                   `json:"sources"`
}

// An answer is what the runtime gives, once as many requests as Together says are with it.
type answer struct {
	Result   json.RawMessage `json:"result"`
	Error    *string         `json:"error"`
	Never    bool            `json:"never"`
	Together int             `json:"together"`

	mu     sync.Mutex
	asked  int
	enough chan struct{}
}

func given[R any](ctx context.Context, a *answer) (*R, error) {
	a.mu.Lock()
	if a.asked++; a.asked == max(a.Together, 1) {
		close(a.enough)
	}
	a.mu.Unlock()
	select {
	case <-a.enough:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	switch {
	case a.Never:
		<-ctx.Done()
		return nil, ctx.Err()
	case a.Error != nil:
		return nil, errors.New(*a.Error)
	}
	result := new(R)
	return result, json.Unmarshal(a.Result, result)
}

func parsed(raw json.RawMessage) *answer {
	a := &answer{enough: make(chan struct{})}
	if err := json.Unmarshal(raw, a); err != nil {
		panic(err)
	}
	return a
}

type model struct{ *answer }

func (m model) Complete(ctx context.Context, _ *sidecar.CompleteRuntimeParams) (*sidecar.CompleteRuntimeResult, error) {
	return given[sidecar.CompleteRuntimeResult](ctx, m.answer)
}

type memory struct {
	*answer
	names []string
}

func (m memory) Sources() (sources []sidecar.RegisterMemoryParams) {
	for _, name := range m.names {
		points := []sidecar.InjectionPoint{sidecar.InjectionPointPerMessage}
		sources = append(sources, sidecar.RegisterMemoryParams{Name: name, InjectionPoints: points})
	}
	return sources
}

func (m memory) GetContext(ctx context.Context, _ *sidecar.GetContextMemoryParams) (*sidecar.GetContextMemoryResult, error) {
	return given[sidecar.GetContextMemoryResult](ctx, m.answer)
}

type driver struct {
	mu     sync.Mutex
	out    *json.Encoder
	client *sidecar.Client
	cancel map[string]context.CancelFunc
}

func (d *driver) Notified(method string, params json.RawMessage) {
	if method == "session/changed" || method == "$/progress" {
		d.tell(map[string]any{"heard": method, "params": params})
	}
}

func (d *driver) tell(what any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.out.Encode(what); err != nil {
		panic(err)
	}
}

func (d *driver) open(l line) {
	if d.client != nil {
		return
	}
	var command []string
	if err := json.Unmarshal([]byte(os.Getenv("CEP_SIDECAR")), &command); err != nil {
		panic(err)
	}
	options := sidecar.Options{Command: command, Host: sidecar.HostInfo{ID: "driver"}, Listener: d}
	if raw, ok := l.Answers["runtime/complete"]; ok {
		options.Completer = model{parsed(raw)}
	}
	if raw, ok := l.Answers["memory/getContext"]; ok {
		options.Memory = memory{parsed(raw), l.Sources}
	}
	d.client = sidecar.New(options)
}

func (d *driver) carryOut(ctx context.Context, l line) (any, error) {
	switch l.Do {
	case "open":
		_, err := d.client.Open(ctx)
		return nil, err
	case "request":
		result := sidecar.NewResult(l.Method)
		if result == nil {
			result = new(any)
		}
		return result, d.client.Request(ctx, l.Method, l.Params, result)
	case "assemble":
		params := new(sidecar.AssembleContextParams)
		if err := json.Unmarshal(l.Params, params); err != nil {
			return nil, err
		}
		return d.client.Assemble(ctx, params)
	case "close":
		return nil, d.client.Close()
	}
	return nil, errors.New("unknown operation " + l.Do)
}

func failure(err error) map[string]any {
	told := map[string]any{"kind": "other", "message": err.Error()}
	var answered *sidecar.ResponseError
	var lost *sidecar.ConnectionLost
	switch {
	case errors.As(err, &answered):
		told["kind"], told["code"], told["data"] = "answer", answered.Code, answered.Data
	case errors.As(err, &lost):
		told["kind"] = "lost"
	case errors.Is(err, sidecar.ErrClosed):
		told["kind"] = "closed"
	case errors.Is(err, context.DeadlineExceeded):
		told["kind"] = "timeout"
	case errors.Is(err, context.Canceled):
		told["kind"] = "cancelled"
	}
	return told
}

func main() {
	d := &driver{out: json.NewEncoder(os.Stdout), cancel: make(map[string]context.CancelFunc)}
	d.tell(map[string]any{"ready": []string{
		"cancelling", "timeouts", "deltas", "notifications", "progress", "runtime/complete", "memory/getContext",
	}})
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			panic(err)
		}
		if l.Do == "cancel" {
			d.cancel[l.Target]()
			continue
		}
		if l.Do == "open" {
			d.open(l)
		}
		ctx, cancel := context.WithCancel(context.Background())
		if l.TimeoutMS > 0 {
			ctx, cancel = context.WithTimeout(ctx, time.Duration(l.TimeoutMS)*time.Millisecond)
		}
		d.cancel[l.ID] = cancel
		go func() {
			result, err := d.carryOut(ctx, l)
			if err != nil {
				d.tell(map[string]any{"id": l.ID, "failure": failure(err)})
				return
			}
			d.tell(map[string]any{"id": l.ID, "result": result})
		}()
	}
	if d.client != nil {
		_ = d.client.Close()
	}
}
