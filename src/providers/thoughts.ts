import type { ModelEvent } from './provider.ts';

/**
 * Tags in which models write their reasoning at the beginning of an answer, if the server does not remove it: DeepSeek, Qwen and
 * others; Gemini's endpoint for OpenAI's clients (`thought`); Reka (`reasoning`); Seed; Magistral; Kimi; Command A; OpenThinker.
 */
const TAGS: readonly (readonly [open: string, close: string])[] = [
  ...['think', 'thinking', 'thought', 'thoughts', 'reasoning', 'seed:think'].map(
    (name) => [`<${name}>`, `</${name}>`] as const,
  ),
  ['[think]', '[/think]'],
  ['◁think▷', '◁/think▷'],
  ['<|start_thinking|>', '<|end_thinking|>'],
  ['<|begin_of_thought|>', '<|end_of_thought|>'],
];
const LONGEST_TAG = Math.max(...TAGS.flat().map(({ length }) => length));
/** Most white space before an answer that is held back in case a tag follows. */
const MOST_BLANKS = 256;

/**
 * Takes reasoning in tags out of the text of an answer as it arrives. Tags later in the text are left: the model talks about them.
 */
export class ThoughtSplitter {
  /** Text that is held back. Null: the beginning of the answer is over. */
  #held: string | null = '';
  /** The closing tag that is awaited; '' outside of reasoning. */
  #close = '';
  #block = '';
  /** White space after the reasoning is dropped with it. */
  #isBehind = false;
  #thoughts: string[] = [];

  get thoughts(): string {
    return this.#thoughts.join('\n\n');
  }

  push(delta: string): readonly ModelEvent[] {
    if (this.#held === null) return [{ type: 'text', delta }];
    this.#held += delta;
    return [...this.#read()];
  }

  /** Returns what is held back. Reasoning that never ends becomes the answer, unless the answer was cut or has calls. */
  end(isWhole: boolean): readonly ModelEvent[] {
    const held = this.#held ?? '';
    this.#held = null;
    if (this.#close === '') return said(this.#isBehind ? held.trimStart() : held);
    const block = this.#block + held;
    this.#close = '';
    if (isWhole && this.#thoughts.length === 0) return said(block);
    return this.#think(block.slice(this.#block.length), block);
  }

  *#read(): Generator<ModelEvent> {
    while (this.#held !== null) {
      if (this.#close === '' && !this.#open()) {
        if (this.#held === null || this.#mayOpen()) return;
        const words = this.#isBehind ? this.#held.trimStart() : this.#held;
        this.#held = null;
        yield* said(words);
        return;
      }
      const held: string = this.#held ?? '';
      const end = held.toLowerCase().indexOf(this.#close);
      if (end < 0) {
        const sure = Math.max(0, held.length - this.#close.length + 1);
        this.#held = held.slice(sure);
        this.#block += held.slice(0, sure);
        if (sure > 0) yield { type: 'thinking', delta: held.slice(0, sure) };
        return;
      }
      yield* this.#think(held.slice(0, end), this.#block + held.slice(0, end));
      this.#held = held.slice(end + this.#close.length);
      this.#isBehind = true;
      this.#close = '';
      this.#block = '';
    }
  }

  #think(delta: string, block: string): ModelEvent[] {
    if (block.trim() !== '') this.#thoughts.push(block.trim());
    return delta === '' ? [] : [{ type: 'thinking', delta }];
  }

  #open(): boolean {
    const text = (this.#held ?? '').trimStart();
    const head = text.slice(0, LONGEST_TAG).toLowerCase();
    const tag = TAGS.find(([open]) => head.startsWith(open));
    if (!tag) return false;
    this.#close = tag[1];
    this.#held = text.slice(tag[0].length);
    return true;
  }

  #mayOpen(): boolean {
    const held = this.#held ?? '';
    const head = held.trimStart().toLowerCase();
    if (head === '') return held.length <= MOST_BLANKS;
    return TAGS.some(([open]) => open.startsWith(head));
  }
}

function said(delta: string): ModelEvent[] {
  return delta === '' ? [] : [{ type: 'text', delta }];
}

export const THOUGHTS_END = '</think>';

/**
 * Some templates write the opening tag themselves, so that the answer has only the closing tag, alone or last on a line. Null
 * if it has none.
 */
export function endOfThoughts(text: string): { thoughts: string; text: string } | null {
  const at = text.indexOf(THOUGHTS_END);
  if (at < 0 || text.slice(0, at).includes('<think>')) return null;
  const rest = text.slice(at + THOUGHTS_END.length);
  if (!/^[ \t]*(?:\r?\n|$)/.test(rest) || text[at - 1] === '`') return null;
  return { thoughts: text.slice(0, at).trim(), text: rest.trimStart() };
}
