// Package contextsidecar lets an agent runtime hand its context management to a context sidecar: a process
// that stores, assembles and compacts what a model sees, and that speaks the Context Engine Protocol on its
// standard streams.
//
// A [Client] starts the sidecar when it is first needed, and starts another one when it has died. Requests may
// be sent from many goroutines. A context that ends takes its request back: the sidecar is told, and its answer
// decides whether the request had its whole effect or none.
//
//	client := contextsidecar.New(contextsidecar.Options{Host: contextsidecar.HostInfo{ID: "my-agent"}})
//	defer client.Close()
//	answer, err := client.Assemble(ctx, &contextsidecar.AssembleContextParams{
//		SessionID: "s1", Messages: transcript, TokenBudget: 100_000,
//	})
package contextsidecar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

const (
	defaultTimeout = 3 * time.Minute
	startTimeout   = 30 * time.Second
	closeTimeout   = 4 * time.Second
	firstBackoff   = 100 * time.Millisecond
	lastBackoff    = 10 * time.Second
	stableAfter    = 30 * time.Second
)

// A Completer answers `runtime/complete` with the text of a model.
type Completer interface {
	Complete(context.Context, *CompleteRuntimeParams) (*CompleteRuntimeResult, error)
}

// A Compacter answers `runtime/compact` with what the runtime's own compaction did.
type Compacter interface {
	Compact(context.Context, *CompactRuntimeParams) (*CompactRuntimeResult, error)
}

// A TranscriptRewriter answers `runtime/rewriteTranscript` by replacing messages of the runtime's transcript.
type TranscriptRewriter interface {
	RewriteTranscript(context.Context, *RewriteTranscriptRuntimeParams) (*RewriteTranscriptRuntimeResult, error)
}

// A MemoryProvider answers `memory/getContext` for the sources that it offers. Each sidecar that the client
// starts is offered them.
type MemoryProvider interface {
	Sources() []RegisterMemoryParams
	GetContext(context.Context, *GetContextMemoryParams) (*GetContextMemoryResult, error)
}

// A Listener hears notifications of the sidecar, one after the other, in the order in which they were sent.
// Params are as they came; the types whose names end in Params decode them.
type Listener interface {
	Notified(method string, params json.RawMessage)
}

// Options say what to start and what the runtime can do. Interfaces that are nil are not declared to the sidecar.
// Their methods are called in goroutines of their own, and may send requests; a context that they are given ends
// when the sidecar no longer wants the answer.
type Options struct {
	// Command is the program with its arguments; `context-sidecar serve` where it is empty.
	Command []string
	// Host is the runtime. Its ID keeps hosts on one store apart.
	Host HostInfo
	// MessageFormat is the dialect of every message; OpenAI's where it is empty.
	MessageFormat MessageFormat
	// Engine is the id of the context engine; where it is empty, the configuration decides.
	Engine string
	// Config overrides the configuration file, in its shape.
	Config map[string]any
	// Env is added to the environment of the process, as in os.Environ.
	Env []string
	// Dir is the working directory of the process.
	Dir string
	// Stderr receives what the sidecar writes to standard error; where it is nil, that is read and dropped.
	Stderr io.Writer
	// Timeout bounds a request whose context has no deadline; three minutes where it is zero.
	Timeout time.Duration

	Completer Completer
	Compacter Compacter
	Rewriter  TranscriptRewriter
	Memory    MemoryProvider
	Listener  Listener
}

// A Client owns one sidecar at a time. Make one with [New].
type Client struct {
	options Options
	turn    chan struct{} // holds a token while nobody starts or ends a sidecar
	current *connection
	offer   ContextEngineCapabilities
	started time.Time
	crashes int
	closed  bool
}

// New makes a client, which starts nothing yet.
func New(options Options) *Client {
	if len(options.Command) == 0 {
		options.Command = []string{"context-sidecar", "serve"}
	}
	if options.Timeout == 0 {
		options.Timeout = defaultTimeout
	}
	client := &Client{options: options, turn: make(chan struct{}, 1)}
	client.turn <- struct{}{}
	return client
}

// Open starts the sidecar unless it runs, and returns what it offers. Requests do so by themselves.
//
// Where the sidecar refuses engine, configuration or store, the error is a *[ResponseError] that says what to fix.
func (c *Client) Open(ctx context.Context) (*ContextEngineCapabilities, error) {
	if _, err := c.connected(ctx); err != nil {
		return nil, err
	}
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	defer c.leave()
	offer := c.offer
	return &offer, nil
}

// Request sends any request and decodes its result into result, unless that is nil.
//
// The error is a *[ResponseError] where the sidecar answered with one, a [ConnectionLost] where it died, [ErrClosed]
// after Close, or the cause of the context. A request is never sent twice.
func (c *Client) Request(ctx context.Context, method string, params, result any) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	live, err := c.connected(ctx)
	if err != nil {
		return err
	}
	return live.call(ctx, method, params, result)
}

// Assemble returns what the model is to see. Only changes travel; the answer has the whole list all the same.
func (c *Client) Assemble(ctx context.Context, params *AssembleContextParams) (*AssembleContextResult, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	live, err := c.connected(ctx)
	if err != nil {
		return nil, err
	}
	asked, base := *params, live.answers.latest(params.SessionID)
	asked.PreviousResultID = base.id
	result := new(AssembleContextResult)
	if err := live.call(ctx, "context/assemble", &asked, result); err != nil {
		return nil, err
	}
	return result, live.answers.complete(params.SessionID, base, result)
}

// Close ends the sidecar, in order where it still answers and by force where it does not. Later requests fail.
func (c *Client) Close() error {
	<-c.turn
	defer c.leave()
	c.closed = true
	if live := c.current; live != nil {
		c.current = nil
		live.end()
	}
	return nil
}

// PID is the process id of the sidecar, 0 where none runs.
func (c *Client) PID() int {
	<-c.turn
	defer c.leave()
	if c.current == nil || !c.current.alive() {
		return 0
	}
	return c.current.process.Process.Pid
}

func (c *Client) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.options.Timeout)
}

func (c *Client) enter(ctx context.Context) error {
	select {
	case <-c.turn:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *Client) leave() { c.turn <- struct{}{} }

// connected returns the running connection, or makes one. After a crash it waits a little, longer each time.
func (c *Client) connected(ctx context.Context) (*connection, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	defer c.leave()
	if c.closed {
		return nil, ErrClosed
	}
	if c.current != nil {
		if c.current.alive() {
			return c.current, nil
		}
		c.current = nil
		c.crashes++
		if time.Since(c.started) > stableAfter {
			c.crashes = 0
		}
	}
	if c.crashes > 1 {
		pause := min(firstBackoff<<min(c.crashes-2, 10), lastBackoff)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	live, err := c.start(ctx)
	if err != nil {
		var refused *ResponseError
		if !errors.As(err, &refused) {
			c.crashes++
		}
		return nil, err
	}
	c.current, c.started = live, time.Now()
	return live, nil
}

func (c *Client) start(ctx context.Context) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	live, err := dial(&c.options)
	if err != nil {
		return nil, err
	}
	greeting, err := c.greeting()
	if err == nil {
		var answer InitializeResult
		if err = live.call(ctx, "initialize", greeting, &answer); err == nil {
			c.offer = answer.Capabilities.Experimental.ContextEngine
			live.notify("initialized", struct{}{})
			err = c.offerSources(ctx, live)
		}
	}
	if err != nil {
		live.kill()
		return nil, err
	}
	return live, nil
}

func (c *Client) offerSources(ctx context.Context, live *connection) error {
	if c.options.Memory == nil {
		return nil
	}
	for _, source := range c.options.Memory.Sources() {
		if err := live.call(ctx, "memory/register", &source, nil); err != nil {
			return fmt.Errorf("memory source %q: %w", source.Name, err)
		}
	}
	return nil
}

func (c *Client) greeting() (*InitializeParams, error) {
	o := c.options
	capabilities := []HostCapability{HostCapabilityAssembleDelta}
	for capability, has := range map[HostCapability]bool{
		HostCapabilityRuntimeComplete:          o.Completer != nil,
		HostCapabilityRuntimeCompact:           o.Compacter != nil,
		HostCapabilityRuntimeRewriteTranscript: o.Rewriter != nil,
		HostCapabilityMemoryGetContext:         o.Memory != nil,
	} {
		if has {
			capabilities = append(capabilities, capability)
		}
	}
	var config json.RawMessage
	if o.Config != nil {
		encoded, err := json.Marshal(o.Config)
		if err != nil {
			return nil, fmt.Errorf("Options.Config: %w", err)
		}
		config = encoded
	}
	pid := int64(os.Getpid())
	return &InitializeParams{
		ProcessID:    &pid,
		ClientInfo:   &PeerInfo{Name: "context-sidecar-go"},
		Capabilities: json.RawMessage("{}"),
		InitializationOptions: &InitializationOptions{ContextEngine: &ContextEngineOptions{
			ProtocolVersion:  ProtocolVersion,
			Host:             &o.Host,
			HostCapabilities: capabilities,
			MessageFormat:    o.MessageFormat,
			Engine:           o.Engine,
			Config:           config,
		}},
	}, nil
}
