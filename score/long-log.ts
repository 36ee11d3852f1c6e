import type { AgentId, Event } from '../src/events/index.ts';
import { countTokens } from '../src/context/budget/tokens.ts';
import { HAS_DATA, realLogs } from '../test/support/real-logs.ts';
import { chained, DATA_FILES } from './data-files.ts';
import { Replay } from './replay.ts';

export const LONG_EVENTS = 10_000;

/**
 * One conversation of 10,000 events as the engine would have logged it: the turns of one agent, with starts and
 * endings. The texts are those of all real logs in a loop, or made-up texts without the data.
 */
export async function longLog(): Promise<Event[]> {
  const logs = HAS_DATA ? (await Promise.all(DATA_FILES.map(realLogs))).flat() : [madeUpLog()];
  const replay = new Replay(() => 'assistant');
  const calls = replay.play(chained(logs, LONG_EVENTS));
  while (replay.log.length < LONG_EVENTS && !calls.next().done);
  const log = replay.log.slice(0, LONG_EVENTS);
  // Ends after a complete turn.
  return log.slice(0, log.findLastIndex(({ kind }) => kind === 'turn.done') + 1);
}

const WORDS =
  'the agent reads a file and says what it has found in it so that others can go on from there'.split(' ');

/** A question, three calls and an answer, repeated in different sizes. */
function madeUpLog(): Event[] {
  const log: Event[] = [];
  const add = (draft: Pick<Event, 'kind' | 'author'> & { body: object }, text: string) => {
    const seq = log.length + 1;
    const envelope = { id: `made-up-${seq}`, tenant: 'default', conversation: 'c', to: [], at: seq * 20_000 };
    log.push({ ...envelope, ...draft, seq, tokens: countTokens(text) } as unknown as Event);
  };
  const author = { kind: 'agent' as const, id: 'assistant' as AgentId, name: 'assistant' };
  for (let round = 0; round < 200; round++) {
    const question = textOf(round, 20);
    add(
      { author: { kind: 'user', id: 'u', name: 'Uma' }, kind: 'message', body: { content: question } },
      question,
    );
    for (let index = 0; index < 3; index++) {
      const call = { id: `call-${round}-${index}`, name: 'read', args: `{"path":"src/f${round}.ts"}` };
      add({ author, kind: 'step', body: { index, content: '', calls: [call] } }, call.args);
      const content = textOf(round * 3 + index, 150 + ((round * 37) % 300));
      add(
        { author, kind: 'tool.result', body: { call: call.id, name: 'read', outcome: 'done', content } },
        content,
      );
    }
    const answer = textOf(round + 7, 60);
    add({ author, kind: 'message', body: { content: answer } }, answer);
  }
  return log;
}

function textOf(start: number, words: number): string {
  return Array.from({ length: words }, (_, index) => WORDS[(start + index * 7) % WORDS.length]).join(' ');
}
