import type OpenAI from 'openai';
import { argsText } from '../call-text.ts';
import type { ModelEvent } from '../provider.ts';

/** Pieces of reasoning and calls. The items come whole; of some servers only the pieces hold the arguments. */
export class ResponsePieces {
  /** Calls that have begun, by the id of their item. */
  readonly #calls = new Map<string, { id: string; name: string; args: string }>();
  /** The part of the reasoning that was told last. */
  #thought: string | null = null;

  *read(event: OpenAI.Responses.ResponseStreamEvent): Generator<ModelEvent> {
    if (event.type === 'response.output_item.added') yield* this.#begin(event.item);
    if (event.type === 'response.function_call_arguments.delta') {
      const call = this.#calls.get(event.item_id);
      if (call && event.delta) yield* this.#write(call, event.delta);
    }
    if (event.type === 'response.function_call_arguments.done') {
      const call = this.#calls.get(event.item_id);
      if (call && call.args === '') yield* this.#write(call, event.arguments);
    }
    if (event.type === 'response.reasoning_summary_text.delta')
      yield* this.#think(`${event.item_id} s${event.summary_index}`, event.delta);
    if (event.type === 'response.reasoning_text.delta')
      yield* this.#think(`${event.item_id} c${event.content_index}`, event.delta);
  }

  *#begin(item: OpenAI.Responses.ResponseOutputItem): Generator<ModelEvent> {
    if (item?.type !== 'function_call' || !item.id || this.#calls.has(item.id)) return;
    const call = { id: item.call_id, name: item.name, args: '' };
    this.#calls.set(item.id, call);
    yield* this.#write(call, item.arguments);
  }

  /** Some servers send an object in place of its text. */
  *#write(call: { id: string; name: string; args: string }, given: unknown): Generator<ModelEvent> {
    const delta = typeof given === 'string' ? given : argsText(given);
    call.args += delta;
    yield { type: 'calling', id: call.id, name: call.name, delta };
  }

  /** The arguments of this call, as they came in pieces. */
  written({ id = '' }: { id?: string }): string {
    return this.#calls.get(id)?.args ?? '';
  }

  *#think(part: string, delta: string): Generator<ModelEvent> {
    if (!delta) return;
    const isFurther = this.#thought !== null && this.#thought !== part;
    this.#thought = part;
    yield { type: 'thinking', delta: isFurther ? `\n\n${delta}` : delta };
  }
}

type TextEvent = Extract<
  OpenAI.Responses.ResponseStreamEvent,
  { type: `response.${'output_text' | 'refusal'}.${'delta' | 'done'}` }
>;
type OutputItem = OpenAI.Responses.ResponseOutputItem;

/** The text of an answer. Servers give it in pieces, with the end of a part or an item, or only in the whole response. */
export class ResponseWords {
  #said = '';
  /** Where the present part and item begin in what was said. */
  #part = 0;
  #item = 0;
  refused = false;

  *read(event: TextEvent): Generator<ModelEvent> {
    switch (event.type) {
      case 'response.refusal.delta':
        this.refused = true;
        return yield* this.#say(event.delta);
      case 'response.output_text.delta':
        return yield* this.#say(event.delta);
      case 'response.refusal.done':
        this.refused = true;
        yield* this.#sayRest(event.refusal, this.#part);
        break;
      case 'response.output_text.done':
        yield* this.#sayRest(event.text, this.#part);
    }
    this.#part = this.#said.length;
  }

  *item(item: OutputItem): Generator<ModelEvent> {
    if (item?.type !== 'message') return;
    yield* this.#sayRest(this.#textOf([item]), this.#item);
    this.#part = this.#item = this.#said.length;
  }

  *rest({ output }: Pick<OpenAI.Responses.Response, 'output'>): Generator<ModelEvent> {
    yield* this.#sayRest(this.#textOf(output ?? []), 0);
  }

  *#say(delta: unknown): Generator<ModelEvent> {
    if (typeof delta !== 'string' || delta === '') return;
    this.#said += delta;
    yield { type: 'text', delta };
  }

  *#sayRest(whole: unknown, from: number): Generator<ModelEvent> {
    if (typeof whole !== 'string') return;
    const said = this.#said.slice(from);
    if (whole.length > said.length && whole.startsWith(said)) yield* this.#say(whole.slice(said.length));
  }

  #textOf(items: readonly OutputItem[]): string {
    const all = items.flatMap((item) => (item?.type === 'message' ? (item.content ?? []) : []));
    const parts = all.filter(Boolean);
    this.refused ||= parts.some(({ type }) => type === 'refusal');
    return parts.map((part) => (part.type === 'refusal' ? part.refusal : (part.text ?? ''))).join('');
  }
}
