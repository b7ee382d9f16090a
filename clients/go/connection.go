package contextsidecar

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	headerLimit  = 8 << 10
	bodyLimit    = 1 << 30
	rememberedOf = 2 << 10 // bytes of standard error that go into error messages
	cancelGrace  = 3 * time.Second
	lastWords    = time.Second
)

// A message is whatever travels: request, notification or response.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  any             `json:"result,omitempty"`
	Error   *ResponseError  `json:"error,omitempty"`
}

type received struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *ResponseError
}

// A connection speaks with one process. Reading, writing and notifying have a goroutine each, so that neither a
// slow listener nor a full pipe keeps answers from their callers.
type connection struct {
	options *Options
	process *exec.Cmd
	answers answers
	stderr  tail
	outbox  *queue[[]byte]
	inbox   *queue[received]
	gone    chan struct{} // closed when the process has ended, after lost was set
	lost    error

	mu      sync.Mutex
	nextID  int64
	waiting map[string]chan received
	asked   map[string]context.CancelFunc
	heard   time.Time
}

func dial(options *Options) (*connection, error) {
	c := &connection{
		options: options,
		process: exec.Command(options.Command[0], options.Command[1:]...),
		outbox:  newQueue[[]byte](),
		inbox:   newQueue[received](),
		gone:    make(chan struct{}),
		waiting: make(map[string]chan received),
		asked:   make(map[string]context.CancelFunc),
	}
	c.stderr.to = options.Stderr
	c.process.Stderr = &c.stderr
	c.process.Dir = options.Dir
	c.process.Env = append(os.Environ(), options.Env...)
	c.process.WaitDelay = lastWords
	input, err := c.process.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("contextsidecar: %w", err)
	}
	output, err := c.process.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("contextsidecar: %w", err)
	}
	if err := c.process.Start(); err != nil {
		return nil, &ConnectionLost{fmt.Sprintf("%s does not start: %v", options.Command[0], err)}
	}
	go c.write(input)
	go c.hear()
	go c.read(output)
	return c, nil
}

func (c *connection) alive() bool {
	select {
	case <-c.gone:
		return false
	default:
		return true
	}
}

func (c *connection) kill() {
	_ = c.process.Process.Kill()
	<-c.gone
}

// end asks the process to leave, and kills it where it does not.
func (c *connection) end() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if c.exchange(ctx, "shutdown", nil, nil) == nil {
		c.notify("exit", nil)
		select {
		case <-c.gone:
		case <-ctx.Done():
		}
	}
	c.kill()
}

// call sends a request and waits for its answer. Where the context ends, the answer still decides; a process that
// then stays silent is killed.
func (c *connection) call(ctx context.Context, method string, params, result any) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return c.exchange(ctx, method, params, result)
}

func (c *connection) exchange(ctx context.Context, method string, params, result any) error {
	c.mu.Lock()
	c.nextID++
	id := strconv.FormatInt(c.nextID, 10)
	answer := make(chan received, 1)
	c.waiting[id] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
	}()
	if err := c.send(message{ID: json.RawMessage(id), Method: method, Params: params}); err != nil {
		return fmt.Errorf("contextsidecar: params of %s: %w", method, err)
	}
	cancelled := ctx.Done()
	var silence <-chan time.Time
	var since time.Time
	for {
		select {
		case got := <-answer:
			return c.settled(ctx, method, got, result)
		case <-c.gone:
			select {
			case got := <-answer: // it came with the last words
				return c.settled(ctx, method, got, result)
			default:
				return c.lost
			}
		case <-cancelled:
			cancelled, since = nil, time.Now()
			c.notify("$/cancelRequest", CancelRequestParams{ID: json.RawMessage(id)})
			silence = time.After(cancelGrace)
		case <-silence:
			c.mu.Lock()
			silent := c.heard.Before(since)
			c.mu.Unlock()
			if silent {
				c.kill()
			}
			return context.Cause(ctx)
		}
	}
}

func (c *connection) settled(ctx context.Context, method string, got received, result any) error {
	if got.Error != nil {
		if got.Error.Code == CodeRequestCancelled && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return got.Error
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(got.Result, result); err != nil {
		return fmt.Errorf("contextsidecar: result of %s: %w", method, err)
	}
	return nil
}

func (c *connection) notify(method string, params any) {
	_ = c.send(message{Method: method, Params: params})
}

func (c *connection) send(m message) error {
	m.JSONRPC = "2.0"
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false) // messages keep their bytes
	if err := encoder.Encode(m); err != nil {
		return err
	}
	frame := fmt.Appendf(nil, "Content-Length: %d\r\n\r\n", body.Len())
	c.outbox.push(append(frame, body.Bytes()...))
	return nil
}

func (c *connection) write(input io.WriteCloser) {
	defer input.Close()
	for {
		frame, ok := c.outbox.pop()
		if !ok {
			return
		}
		if _, err := input.Write(frame); err != nil {
			return // the reader sees the end too
		}
	}
}

// read takes everything that the process writes, until it ends.
func (c *connection) read(output io.Reader) {
	reader := bufio.NewReaderSize(output, 64<<10)
	var problem error
	for problem == nil {
		var body []byte
		if body, problem = frame(reader); problem == nil {
			problem = c.take(body)
		}
	}
	c.outbox.close()
	if errors.Is(problem, io.EOF) { // most processes that close their output end by themselves
		timer := time.AfterFunc(lastWords, func() { _ = c.process.Process.Kill() })
		defer timer.Stop()
	} else {
		_ = c.process.Process.Kill()
	}
	how := "ended with status 0"
	if err := c.process.Wait(); err != nil {
		how = "ended: " + err.Error()
	}
	if !errors.Is(problem, io.EOF) {
		how = problem.Error()
	}
	if words := c.stderr.last(); words != "" {
		how += "; it wrote: " + words
	}
	c.lost = &ConnectionLost{"the sidecar " + how}
	close(c.gone)
	c.inbox.close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cancel := range c.asked {
		cancel()
	}
}

func (c *connection) take(body []byte) error {
	var m received
	if err := json.Unmarshal(body, &m); err != nil {
		return fmt.Errorf("wrote what is no message: %w", err)
	}
	c.mu.Lock()
	c.heard = time.Now()
	answer := c.waiting[string(m.ID)]
	c.mu.Unlock()
	switch {
	case m.Method == "" && answer != nil:
		select {
		case answer <- m:
		default: // answered before
		}
	case m.Method == "":
	case m.Method == "$/cancelRequest":
		var params struct{ ID json.RawMessage }
		if json.Unmarshal(m.Params, &params) == nil {
			c.mu.Lock()
			if cancel := c.asked[string(params.ID)]; cancel != nil {
				cancel()
			}
			c.mu.Unlock()
		}
	case m.ID == nil:
		c.inbox.push(m)
	default:
		ctx, cancel := context.WithCancel(context.Background())
		c.mu.Lock()
		c.asked[string(m.ID)] = cancel
		c.mu.Unlock()
		go c.answer(ctx, cancel, m)
	}
	return nil
}

// hear hands notifications on, one after the other.
func (c *connection) hear() {
	for {
		m, ok := c.inbox.pop()
		if !ok {
			return
		}
		if c.options.Listener != nil {
			c.options.Listener.Notified(m.Method, m.Params)
		}
	}
}

// answer has the runtime answer a request of the sidecar.
func (c *connection) answer(ctx context.Context, cancel context.CancelFunc, m received) {
	result, err := c.handled(ctx, m)
	taken := ctx.Err() != nil
	c.mu.Lock()
	delete(c.asked, string(m.ID))
	c.mu.Unlock()
	cancel()
	reply := message{ID: m.ID, Result: result}
	var refusal *ResponseError
	switch {
	case err == nil:
	case taken:
		reply = message{ID: m.ID, Error: &ResponseError{Code: CodeRequestCancelled, Message: m.Method + " was taken back"}}
	case errors.As(err, &refusal):
		reply = message{ID: m.ID, Error: refusal}
	default:
		reply = message{ID: m.ID, Error: &ResponseError{Code: CodeInternalError, Message: err.Error()}}
	}
	if c.send(reply) != nil {
		_ = c.send(message{ID: m.ID, Error: &ResponseError{Code: CodeInternalError, Message: "the answer has no JSON"}})
	}
}

func (c *connection) handled(ctx context.Context, m received) (any, error) {
	o := c.options
	switch {
	case m.Method == "runtime/complete" && o.Completer != nil:
		return run(ctx, m, o.Completer.Complete)
	case m.Method == "runtime/compact" && o.Compacter != nil:
		return run(ctx, m, o.Compacter.Compact)
	case m.Method == "runtime/rewriteTranscript" && o.Rewriter != nil:
		return run(ctx, m, o.Rewriter.RewriteTranscript)
	case m.Method == "memory/getContext" && o.Memory != nil:
		return run(ctx, m, o.Memory.GetContext)
	}
	return nil, &ResponseError{Code: CodeMethodNotFound, Message: "this host does not answer " + m.Method}
}

func run[P, R any](ctx context.Context, m received, answer func(context.Context, *P) (*R, error)) (result any, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("%s: %v", m.Method, panicked)
		}
	}()
	params := new(P)
	if err := json.Unmarshal(m.Params, params); err != nil {
		return nil, &ResponseError{Code: CodeInvalidParams, Message: err.Error()}
	}
	return answer(ctx, params)
}

// frame reads one body. Header names come in any case and order; lines may end with LF alone.
func frame(reader *bufio.Reader) ([]byte, error) {
	length, size := -1, 0
	for {
		line, err := reader.ReadSlice('\n')
		if err != nil {
			if errors.Is(err, bufio.ErrBufferFull) {
				return nil, errors.New("wrote what is no frame")
			}
			return nil, err
		}
		if size += len(line); size > headerLimit {
			return nil, errors.New("wrote a header without an end")
		}
		text := strings.TrimRight(string(line), "\r\n")
		if text == "" {
			break
		}
		name, value, _ := strings.Cut(text, ":")
		if strings.EqualFold(strings.TrimSpace(name), "Content-Length") {
			length, err = strconv.Atoi(strings.TrimSpace(value))
			if err != nil || length > bodyLimit {
				return nil, fmt.Errorf("wrote the length %q", value)
			}
		}
	}
	if length < 0 {
		return nil, errors.New("wrote a header without a length")
	}
	body := make([]byte, length)
	_, err := io.ReadFull(reader, body)
	return body, err
}

// A queue has no bound, so that pushing never waits.
type queue[T any] struct {
	mu     sync.Mutex
	more   *sync.Cond
	items  []T
	closed bool
}

func newQueue[T any]() *queue[T] {
	q := new(queue[T])
	q.more = sync.NewCond(&q.mu)
	return q
}

func (q *queue[T]) push(item T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = append(q.items, item)
	q.more.Signal()
}

func (q *queue[T]) pop() (item T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) == 0 && !q.closed {
		q.more.Wait()
	}
	if len(q.items) == 0 {
		return item, false
	}
	item, q.items = q.items[0], q.items[1:]
	return item, true
}

func (q *queue[T]) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.more.Broadcast()
}

// A tail passes bytes on and remembers the last of them.
type tail struct {
	to   io.Writer
	mu   sync.Mutex
	kept []byte
}

func (t *tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, data...)
	if extra := len(t.kept) - rememberedOf; extra > 0 {
		t.kept = append(t.kept[:0], t.kept[extra:]...)
	}
	if t.to != nil {
		_, _ = t.to.Write(data)
	}
	return len(data), nil
}

func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.kept))
}
