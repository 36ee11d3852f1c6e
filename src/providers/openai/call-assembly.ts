import type { ToolCall } from '../../events/index.ts';
import { mintCallId, parseArgs } from '../call-text.ts';
import type { ModelEvent, ModelRequest } from '../provider.ts';
import type { ReplyMeter } from '../reply-limits.ts';

interface Call {
  /** As the server numbers it. */
  index: unknown;
  /** The server's own id. */
  given: string;
  id: string;
  name: string;
  args: string;
  /** How far its arguments are read for their end. */
  readonly end: ObjectEnd;
  /** Its pieces are told. Another call of the answer may have the same id, and then those of the first are. */
  isTold: boolean;
  /** Its name came again after its arguments were whole: the next arguments are of another call. */
  isNamedAgain: boolean;
}

/** A fragment of a call, read without trust. */
interface Fragment {
  index: unknown;
  id: string;
  name: string;
  args: string;
  /** The arguments came as an object, and so whole. */
  isObject: boolean;
}

/**
 * The calls of an answer, from their fragments.
 *  C1  A fragment is of the call with its id, else with its index, else of the last one. Calls are told apart also where a server
 *      numbers all of them 0, numbers none, or gives none an id: by another name, by another entry of the same chunk, and by
 *      arguments that begin again after they were whole.
 *  C2  Once a call has a name it is told; without an id by then it gets one, which it keeps.
 *  C3  A call that is told again whole is one call.
 *  C4  An id that changes from fragment to fragment begins no call without a name.
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

  /** Reads `tool_calls` of one chunk, or the older `function_call`. Yields what of the calls is new. */
  *add(given: unknown): Generator<ModelEvent> {
    if (!given) return;
    const inChunk = new Set<Call>();
    for (const each of Array.isArray(given) ? (given as unknown[]) : [given]) {
      const fragment = fragmentOf(each);
      if (!fragment) continue;
      this.#meter.arguments(fragment.args);
      const known = this.#known(fragment);
      if (known && isAgain(known, fragment)) continue;
      const call = known && isOf(known, fragment, inChunk) ? known : this.#begin(fragment, known);
      inChunk.add(call);
      yield* this.#extend(call, fragment);
    }
  }

  #known({ id, name, index }: Fragment): Call | undefined {
    const isHere = (call: Call) => index === undefined || call.index === index;
    const named = id === '' ? undefined : this.#calls.findLast((call) => call.given === id && isHere(call));
    const placed = named ?? this.#calls.findLast(isHere);
    return placed ?? (id === '' && name === '' ? this.#calls.at(-1) : undefined);
  }

  #begin({ index, name }: Fragment, before: Call | undefined): Call {
    this.#meter.call();
    const call: Call = {
      index: index ?? before?.index,
      given: '',
      id: '',
      name: name || (before?.isNamedAgain ? before.name : ''),
      args: '',
      end: new ObjectEnd(),
      isTold: false,
      isNamedAgain: false,
    };
    this.#calls.push(call);
    return call;
  }

  *#extend(call: Call, { id, name, args, isObject }: Fragment): Generator<ModelEvent> {
    call.given ||= id;
    call.id ||= call.given;
    call.name ||= name;
    if (name !== '' && args === '' && call.end.isWhole(call.args)) call.isNamedAgain = true;
    if (!isObject || call.args === '') call.args += args;
    else if (args !== '{}') call.args = args;
    if (call.isTold) {
      if (args && call.id) yield { type: 'calling', id: call.id, name: call.name, delta: args };
    } else if (call.name) yield* this.#tell(call);
  }

  *#tell(call: Call): Generator<ModelEvent> {
    call.id ||= mintCallId(this.#trace, this.#calls.indexOf(call));
    if (this.#told.has(call.id)) return;
    this.#told.add(call.id);
    call.isTold = true;
    yield { type: 'calling', id: call.id, name: call.name, delta: call.args };
  }

  /** The tool that was named once more and got no arguments. In an answer that was cut, this was the next call. */
  get begun(): { broken?: string } {
    const last = this.#calls.at(-1);
    return last?.isNamedAgain ? { broken: last.name } : {};
  }

  *finished(): Generator<ToolCall> {
    for (const [i, { id, name, args }] of this.#calls.entries()) {
      if (name !== '' || args !== '') yield { id: id || mintCallId(this.#trace, i), name, args };
    }
  }
}

/** Whether the fragment goes on with this call. */
function isOf(known: Call, { id, name, args }: Fragment, inChunk: ReadonlySet<Call>): boolean {
  const isOther = id !== '' && known.given !== '' && id !== known.given;
  if (isOther && (name !== '' || args === '')) return false;
  const beginsAnew = /^[{"]/.test(args) && known.end.isWhole(known.args);
  if (name === '') return !(beginsAnew && known.isNamedAgain);
  return !inChunk.has(known) && (known.name === '' || known.name === name) && !beginsAnew;
}

/** The whole call once more, as some servers send it at the end. */
function isAgain(known: Call, { id, name, args }: Fragment): boolean {
  if (id !== known.given || (name !== '' && name !== known.name)) return false;
  // Written without blanks or with them, one is never far longer than the other.
  return args.startsWith('{') && known.args.length <= 2 * args.length + 16 && sameJson(args, known.args);
}

function sameJson(one: string, other: string): boolean {
  if (!new ObjectEnd().isWhole(one)) return false;
  const parsed = one === other ? null : parseArgs(one);
  return one === other || (parsed !== null && JSON.stringify(parsed) === JSON.stringify(parseArgs(other)));
}

/** Finds the end of an object that grows. It reads each sign once, however often it is asked. */
class ObjectEnd {
  #at = 0;
  #depth = 0;
  #isText = false;
  #hasKey = false;

  /** Whether this is one object to its end, and not an empty one. */
  isWhole(args: string): boolean {
    for (; this.#at < args.length; this.#at += 1) {
      const sign = args[this.#at];
      if (this.#isText && sign === '\\') this.#at += 1;
      else if (sign === '"') {
        this.#isText = !this.#isText;
        this.#hasKey = true;
      } else if (!this.#isText && (sign === '{' || sign === '[')) this.#depth += 1;
      else if (!this.#isText && (sign === '}' || sign === ']')) this.#depth -= 1;
    }
    return this.#hasKey && !this.#isText && this.#depth === 0;
  }
}

type Fields = { readonly [field: string]: unknown };

/** Servers put arguments beside the function, or name them otherwise, or send an object in place of their text. */
function fragmentOf(given: unknown): Fragment | null {
  if (typeof given !== 'object' || given === null) return null;
  const entry = given as Fields;
  const inner = entry['function'];
  const made = typeof inner === 'object' && inner !== null ? (inner as Fields) : entry;
  const args = argsOf(made) ?? argsOf(entry) ?? '';
  const { id, index } = entry;
  return {
    index: index ?? undefined,
    id: typeof id === 'number' ? String(id) : textOf(id),
    name: textOf(made['name']),
    args: typeof args === 'string' ? args : JSON.stringify(args),
    isObject: typeof args !== 'string',
  };
}

function argsOf({ arguments: args, parameters, input }: Fields): unknown {
  return args ?? parameters ?? input ?? undefined;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
