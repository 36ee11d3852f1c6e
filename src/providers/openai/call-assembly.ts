import type OpenAI from 'openai';
import type { ToolCall } from '../../events/index.ts';
import { mintCallId, parseArgs } from '../call-text.ts';
import type { ModelEvent, ModelRequest } from '../provider.ts';
import type { ReplyMeter } from '../reply-limits.ts';

type CallDelta = NonNullable<OpenAI.ChatCompletionChunk['choices'][number]['delta']['tool_calls']>[number];

interface Call {
  index: number;
  /** The server's own id. */
  given: string;
  id: string;
  name: string;
  args: string;
  /** Its pieces are told. Another call of the answer may have the same id, and then those of the first are. */
  isTold: boolean;
}

/**
 * The calls of an answer, from their fragments.
 *  C1  Fragments are keyed by index. Servers that number every call 0 are recognised by the id.
 *  C2  Once a call has a name it is told; without an id by then it gets one, which it keeps.
 */
export class CallAssembly {
  readonly #calls: Call[] = [];
  readonly #told = new Set<string>();
  readonly #meter: ReplyMeter;
  readonly #trace: ModelRequest['trace'];

  constructor(meter: ReplyMeter, trace: ModelRequest['trace']) {
    this.#meter = meter;
    this.#trace = trace;
  }

  get isEmpty(): boolean {
    return this.#calls.length === 0;
  }

  /** Yields what of the call is new. */
  *add(delta: CallDelta): Generator<ModelEvent> {
    const call = this.#callOf(delta);
    const { name = '', arguments: args = '' } = delta.function ?? {};
    call.name ||= name;
    this.#meter.arguments(args);
    call.args += args;
    if (call.isTold) {
      if (args) yield { type: 'calling', id: call.id, name: call.name, delta: args };
    } else if (call.name) yield* this.#begin(call);
  }

  /** Some servers leave the index out. */
  #callOf({ id = '', index: given }: Omit<CallDelta, 'index'> & { index?: number }): Call {
    const index = given ?? this.#calls.at(-1)?.index ?? 0;
    let call = this.#calls.findLast((known) => known.index === index);
    if (!call || (id && call.given && id !== call.given)) {
      this.#meter.call();
      call = { index, given: '', id: '', name: '', args: '', isTold: false };
      this.#calls.push(call);
    }
    call.given ||= id;
    call.id ||= call.given;
    return call;
  }

  *#begin(call: Call): Generator<ModelEvent> {
    call.id ||= mintCallId(this.#trace, this.#calls.indexOf(call));
    if (this.#told.has(call.id)) return;
    this.#told.add(call.id);
    call.isTold = true;
    yield { type: 'calling', id: call.id, name: call.name, delta: call.args };
  }

  *finished(cut: boolean): Generator<ToolCall> {
    for (const [i, { id, name, args }] of this.#calls.entries()) {
      // An answer cut by its token limit may end inside the arguments; an incomplete call is dropped.
      if (cut && parseArgs(args) === null) continue;
      yield { id: id || mintCallId(this.#trace, i), name, args };
    }
  }
}
