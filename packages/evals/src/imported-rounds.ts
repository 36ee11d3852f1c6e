import type { Event, EventOf } from './troupe.ts';
import type { ConversationRun } from './conversation-run.ts';
import type { RecordedMoves } from './recorded-moves.ts';
import { isPersons, type RecordedTurns } from './recorded-turns.ts';

/** Words of one person, and what an agent did until the next words of people. */
interface Round {
  said: EventOf<'message'>[];
  done: Event[];
  agent: string;
}

const NO_RESULT = 'the conversation has no result of this call';
const NO_ANSWER = 'the conversation has no answer here';

/** An imported conversation has no turns: what an agent did between the words of people is one. */
export function isImported({ turns, events }: ConversationRun): boolean {
  return turns.length === 0 && events.some(({ author }) => author.kind === 'agent');
}

export function importedMoves(run: ConversationRun, unaddressed: string | undefined): RecordedMoves {
  const moves = roundsOf(run).flatMap(({ said, agent }) => {
    const by = said[0]?.author;
    const content = said.map(({ body }) => body.content).join('\n\n');
    return by ? [{ move: 'say', by, content, to: agent === unaddressed ? undefined : [agent] } as const] : [];
  });
  return { moves, files: {} };
}

export function importedTurns(run: ConversationRun): RecordedTurns {
  const made: RecordedTurns = { answers: [], calls: [] };
  const numbers = new Map<string, number>();
  for (const { done, agent } of roundsOf(run)) {
    const number = (numbers.get(agent) ?? 0) + 1;
    numbers.set(agent, number);
    addTurn(made, { id: `${run.conversation}:${agent}:${number}`, agent, events: done });
  }
  return made;
}

function addTurn(
  made: RecordedTurns,
  { id: turn, agent, events }: { id: string; agent: string; events: readonly Event[] },
): void {
  const asked = new Map<string, { turn: string; agent: string; tool: string; args: string }>();
  const words: string[] = [];
  let step = 1;
  for (const { kind, body } of events) {
    if (kind === 'message') words.push(body.content);
    if (kind === 'step') {
      // A turn has one reply. What was said before further calls stands beside them.
      const content = [...words.splice(0), body.content].filter((text) => text !== '').join('\n\n');
      made.answers.push({ turn, step, content, calls: body.calls });
      step += 1;
      for (const { id, name, args } of body.calls) asked.set(id, { turn, agent, tool: name, args });
    }
    const call = kind === 'tool.result' ? asked.get(body.call) : undefined;
    if (kind !== 'tool.result' || !call) continue;
    asked.delete(body.call);
    if (body.outcome === 'done' || body.outcome === 'failed')
      made.calls.push({ ...call, outcome: body.outcome, result: body.content });
  }
  for (const call of asked.values()) made.calls.push({ ...call, outcome: 'failed', result: NO_RESULT });
  const content = words.join('\n\n');
  made.answers.push({ turn, step, content, ...(content === '' && { failed: NO_ANSWER }) });
}

function roundsOf({ events }: ConversationRun): Round[] {
  const first = events.find(({ author }) => author.kind === 'agent')?.author.id ?? '';
  const rounds: Round[] = [];
  for (const event of events) {
    const round = rounds.at(-1);
    if (isPersons(event)) {
      const isSame = round?.done.length === 0 && round.said[0]?.author.id === event.author.id;
      if (round && isSame) round.said.push(event as EventOf<'message'>);
      else rounds.push({ said: [event as EventOf<'message'>], done: [], agent: first });
    } else if (round && event.author.kind === 'agent') {
      if (round.done.length === 0) round.agent = event.author.id;
      round.done.push(event);
    }
  }
  return rounds;
}
