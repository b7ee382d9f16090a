package contextsidecar_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	sidecar "contextsidecar"
)

// command starts the real sidecar, which CONTEXT_SIDECAR names.
func command(t *testing.T) []string {
	t.Helper()
	named := os.Getenv("CONTEXT_SIDECAR")
	if named == "" {
		t.Fatal("CONTEXT_SIDECAR has to name the sidecar, such as `context-sidecar serve`")
	}
	return strings.Fields(named)
}

func started(t *testing.T, options sidecar.Options) *sidecar.Client {
	t.Helper()
	options.Command = command(t)
	options.Host = sidecar.HostInfo{ID: "go-test"}
	options.Env = append(options.Env, "CONTEXT_SIDECAR_STATE_DIR="+t.TempDir())
	client := sidecar.New(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func said(role, content string) sidecar.Message {
	encoded, _ := json.Marshal(map[string]string{"role": role, "content": content})
	return encoded
}

func TestAMessageComesBackByteForByte(t *testing.T) {
	ctx, client := context.Background(), started(t, sidecar.Options{Engine: "full"})
	odd := sidecar.Message(`{"content":"1 < 2 & \u00e9", "role":"user","n":1.50}`)
	_, err := client.ContextIngest(ctx, &sidecar.IngestContextParams{SessionID: "s", Message: odd})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // whole, then as edits
		answer, err := client.Assemble(ctx, &sidecar.AssembleContextParams{SessionID: "s"})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(answer.Messages[0]); got != strings.ReplaceAll(string(odd), ", ", ",") && got != string(odd) {
			t.Fatalf("came back as %s", got)
		}
	}
}

func TestAnErrorHasItsCodeAndItsData(t *testing.T) {
	client := started(t, sidecar.Options{Engine: "full"})
	_, err := client.SessionGet(context.Background(), &sidecar.GetSessionParams{SessionID: "nobody"})
	var answered *sidecar.ResponseError
	if !errors.As(err, &answered) || !sidecar.IsCode(err, sidecar.CodeSessionNotFound) || answered.Retryable() {
		t.Fatalf("got %v", err)
	}
	var data sidecar.SessionNotFoundData
	if err := json.Unmarshal(answered.Data, &data); err != nil || data.Hint == "" {
		t.Fatalf("data is %s", answered.Data)
	}
}

func TestAnotherSidecarFollowsOneThatWasKilled(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client := started(t, sidecar.Options{Engine: "full"})
	params := &sidecar.CommitTurnContextParams{
		SessionID: "s", AdvancementKey: "k", Messages: []sidecar.Message{said("user", "hello")},
	}
	if _, err := client.ContextCommitTurn(ctx, params); err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(client.PID())
	if err != nil || process.Kill() != nil {
		t.Fatalf("cannot kill %d: %v", client.PID(), err)
	}
	var lost *sidecar.ConnectionLost
	answer, err := client.ContextCommitTurn(ctx, params)
	for errors.As(err, &lost) { // it may die under a request; this one is safe to repeat
		answer, err = client.ContextCommitTurn(ctx, params)
	}
	if err != nil || answer.Status != sidecar.CommitStatusDuplicate {
		t.Fatalf("got %v, %v", answer, err)
	}
}

func TestARequestEndsWithItsContext(t *testing.T) {
	client := started(t, sidecar.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := client.EngineList(ctx, &sidecar.ListEngineParams{}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}

func TestAClosedClientRefuses(t *testing.T) {
	client := started(t, sidecar.Options{})
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Open(context.Background()); !errors.Is(err, sidecar.ErrClosed) {
		t.Fatalf("got %v", err)
	}
}

func TestTheExampleAgentRemembersItsTurns(t *testing.T) {
	run := exec.Command("go", "run", "./examples/agent", "What is the plan?", "And then?")
	run.Env = append(os.Environ(), "CONTEXT_SIDECAR="+strings.Join(command(t), " "), "CONTEXT_SIDECAR_STATE_DIR="+t.TempDir())
	out, err := run.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `You asked "And then?"; I have seen 3 messages`) {
		t.Fatalf("%v: %s", err, out)
	}
}
