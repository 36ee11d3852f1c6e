import { type Event, eventOf, withoutStaleNote } from './troupe.ts';
import { callsOf, type ConversationRun, type RunTurn } from './conversation-run.ts';
import type { RecordedAnswer, RecordedCall } from './recording.ts';

/** What the models and the tools of a conversation gave. */
export interface RecordedTurns {
  answers: RecordedAnswer[];
  /** All calls with a result. Arguments are as the model wrote them. */
  calls: (Omit<RecordedCall, 'args'> & { agent: string; args: string })[];
}

/** Reads a run that was played by Troupe. */
export function recordedTurns(run: ConversationRun): RecordedTurns {
  const requests = new Set(
    run.events.flatMap((event) => eventOf(event, 'approval.requested')?.body.request ?? []),
  );
  const calls = callsOf(run).flatMap(({ turn, tool, args, result }) => {
    const outcome = result?.body.outcome;
    if (!result || (outcome !== 'done' && outcome !== 'failed')) return [];
    // An approved call is made in a later turn.
    const of = result.turn ?? turn.id;
    return [
      { turn: of, agent: turn.agent, tool, args, outcome, result: withoutStaleNote(result.body.content) },
    ];
  });
  return { answers: run.turns.flatMap((turn) => answersOf(turn, requests)), calls };
}

function answersOf(turn: RunTurn, requests: ReadonlySet<string>): RecordedAnswer[] {
  const answers: RecordedAnswer[] = [];
  let steps = 0;
  for (const event of turn.events) {
    if (event.kind === 'step') {
      const { index, content, calls } = event.body;
      steps = index + 1;
      // The step of an approved call is the engine's.
      if (calls.some(({ id }) => requests.has(id))) continue;
      answers.push({ turn: turn.id, step: steps, content, ...(calls.length > 0 && { calls }) });
    }
    if (event.kind === 'message' && event.author.kind === 'agent')
      answers.push({ turn: turn.id, step: steps + 1, content: event.body.content });
    if (event.kind === 'turn.failed') {
      const { code, message, partial } = event.body;
      answers.push({ turn: turn.id, step: steps + 1, content: partial, failed: `${code}: ${message}` });
    }
  }
  return answers;
}

export function isPersons({ kind, author, turn }: Event): boolean {
  return kind === 'message' && author.kind === 'user' && turn === undefined;
}
