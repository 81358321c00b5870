package dash

import "github.com/xstreamq/xstreamq"

// Verb is one thing that can be asked of the dashboard.
type Verb string

// Verbs. Those from VerbPause on change something.
const (
	VerbOpen       Verb = "open"       // the page itself, and what it is allowed to do
	VerbList       Verb = "ls"         // every stream and group, with counts; also the live stream of them
	VerbDepth      Verb = "depth"      // the counts of one stream or group
	VerbPending    Verb = "pending"    // what is in flight
	VerbConsumers  Verb = "consumers"  // who consumes
	VerbRetrying   Verb = "retrying"   // what waits out its backoff
	VerbPeek       Verb = "peek"       // what lies in a stream
	VerbGet        Verb = "get"        // one message
	VerbWhy        Verb = "why"        // where one message is
	VerbDelayed    Verb = "delayed"    // what was published for later
	VerbDeadList   Verb = "dlq"        // dead letters
	VerbCompaction Verb = "compaction" // what could be trimmed, and who still needs it
	VerbServer     Verb = "server"     // doctor: memory, persistence, version, and what is stored
	VerbTasks      Verb = "tasks"      // background tasks

	VerbPause      Verb = "pause"
	VerbResume     Verb = "resume"
	VerbCancel     Verb = "cancel"  // a delayed message
	VerbRedrive    Verb = "redrive" // dead letters
	VerbEdit       Verb = "edit"    // redrive one dead letter with another body
	VerbPurge      Verb = "purge"   // dead letters, for good
	VerbCompact    Verb = "compact"
	VerbCancelTask Verb = "cancel-task"
)

// Changes says that the verb changes what is stored, or what is being done.
func (v Verb) Changes() bool {
	switch v {
	case VerbPause, VerbResume, VerbCancel, VerbRedrive, VerbEdit, VerbPurge, VerbCompact, VerbCancelTask:
		return true
	}
	return false
}

// Action is a verb with what it is about.
type Action struct {
	Verb          Verb
	Stream, Group string // "" where the verb is not about one
	// IDs are the messages that are named, and the task. Redrive and purge without: all that Filter takes.
	IDs    []string
	Filter *xstreamq.Filter // of redrive and purge of all that match
	Task   string           // of redrive and purge in the background
	Result *xstreamq.BulkResult
}
