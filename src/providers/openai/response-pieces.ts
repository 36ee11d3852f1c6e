import type OpenAI from 'openai';
import type { ModelEvent } from '../provider.ts';

/** Pieces of reasoning and calls. Nothing of them is kept: the items come whole. */
export class ResponsePieces {
  /** Calls that have begun, by the id of their item. */
  readonly #calls = new Map<string, { id: string; name: string }>();
  /** The part of the reasoning that was told last. */
  #thought: string | null = null;

  *read(event: OpenAI.Responses.ResponseStreamEvent): Generator<ModelEvent> {
    if (event.type === 'response.output_item.added') yield* this.#begin(event.item);
    if (event.type === 'response.function_call_arguments.delta') {
      const call = this.#calls.get(event.item_id);
      if (call && event.delta) yield { type: 'calling', ...call, delta: event.delta };
    }
    if (event.type === 'response.reasoning_summary_text.delta')
      yield* this.#think(`${event.item_id} s${event.summary_index}`, event.delta);
    if (event.type === 'response.reasoning_text.delta')
      yield* this.#think(`${event.item_id} c${event.content_index}`, event.delta);
  }

  *#begin(item: OpenAI.Responses.ResponseOutputItem): Generator<ModelEvent> {
    if (item?.type !== 'function_call' || !item.id || this.#calls.has(item.id)) return;
    const call = { id: item.call_id, name: item.name };
    this.#calls.set(item.id, call);
    yield { type: 'calling', ...call, delta: item.arguments || '' };
  }

  *#think(part: string, delta: string): Generator<ModelEvent> {
    if (!delta) return;
    const isFurther = this.#thought !== null && this.#thought !== part;
    this.#thought = part;
    yield { type: 'thinking', delta: isFurther ? `\n\n${delta}` : delta };
  }
}
