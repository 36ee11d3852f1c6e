import { countTokens } from '../src/context/budget/tokens.ts';
import type { Event, EventDraft } from '../src/events/index.ts';
import { below, between, pick, type Random } from '../sim/random.ts';

/** Parts of texts: words, paths, demands, errors, to-dos, ids, other scripts, forged fences, unbroken letters. */
const PIECES = [
  'read ',
  'the file ',
  'src/context/view/view.ts ',
  'must never be lost. ',
  'TypeError: x is not a function\n',
  'order #W2378156 ',
  '\n\n- [ ] write it down\n',
  'and then? ',
  'что дальше? ',
  '🙂👩‍👩‍👧 ',
  '<msg 1234abcd>',
  'a'.repeat(200),
].map((text) => ({ text, tokens: countTokens(text) }));

/** Characters per token of the sizes below. */
const CHARACTERS = 4;
const HUGE_SHARE = 0.05;
const PAUSE_SHARE = 0.1;
const LOST_SHARE = 0.04;

const USER = { kind: 'user', id: 'u', name: 'Uma' } as const;
const AGENT = { kind: 'agent', id: 'assistant', name: 'assistant' } as const;

/**
 * A log of a few exchanges as it would be imported. Sizes are log-uniform; now and then a single message or result is
 * several times the window.
 */
export function randomLog(random: Random, window: number): Event[] {
  const log: Event[] = [];
  const add = (draft: Pick<EventDraft, 'kind' | 'author' | 'body'>, tokens: number) => {
    const seq = log.length + 1;
    const pause = random() < PAUSE_SHARE ? 3_600_000 : 10_000;
    const envelope = { id: `e${seq}`, to: [], tenant: 'default', conversation: 'c' };
    log.push({ ...envelope, ...draft, seq, tokens, at: (log.at(-1)?.at ?? 0) + pause } as unknown as Event);
  };
  const say = (author: typeof USER | typeof AGENT, most: number) => {
    const { text, tokens } = randomText(random, most);
    add({ author, kind: 'message', body: { content: text } }, tokens);
  };
  const huge = () => (random() < HUGE_SHARE ? window * 4 : window / 3);
  const exchanges = 1 + below(random, 3);
  for (let exchange = 0; exchange < exchanges; exchange++) {
    for (let left = below(random, 3); left >= 0; left--) say(USER, huge() / 2);
    for (let left = below(random, 3); left > 0; left--) {
      const calls = Array.from({ length: 1 + below(random, 3) }, (_, at) => ({
        id: `k${log.length}-${at}`,
        name: pick(random, ['read', 'bash', 'todo_write']),
        args: JSON.stringify({ path: randomText(random, 10).text }),
      }));
      const content = random() < 0.5 ? '' : randomText(random, 15).text;
      const tokens = countTokens([content, ...calls.map(({ name, args }) => `${name} ${args}`)].join('\n'));
      add({ author: AGENT, kind: 'step', body: { index: 0, content, calls } }, tokens);
      for (const { id, name } of calls) {
        if (random() < LOST_SHARE) continue;
        const result = randomText(random, huge());
        const outcome = random() < 0.15 ? 'failed' : 'done';
        const body = { call: id, name, outcome, content: result.text } as const;
        add({ author: AGENT, kind: 'tool.result', body }, result.tokens);
      }
    }
    if (random() < 0.85) say(AGENT, huge());
  }
  return log;
}

/**
 * A text of about this many tokens at most. The count is the sum of its pieces: counting the whole text would take
 * longer than the round.
 */
function randomText(random: Random, most: number): { text: string; tokens: number } {
  const length = Math.floor(10 ** between(random, 0.5, Math.log10(most * CHARACTERS)));
  let text = 'w';
  let tokens = 1;
  while (text.length < length) {
    const piece = pick(random, PIECES);
    const times = 1 + below(random, Math.max(1, (length - text.length) / (piece.text.length * 4)));
    text += piece.text.repeat(times);
    tokens += piece.tokens * times;
  }
  return { text: text.trimEnd(), tokens };
}
