import type { Random } from '../sim/random.ts';

/** A fuzzing target. An input is a plain value: it can be printed, generated again from its seed, and shrunk. */
export interface Target<Input = unknown> {
  name: string;
  make(random: Random): Input;
  /** Returns `accepted`, or the code with which the input was refused. Throws on anything that must not happen. */
  run(input: Input): Promise<string> | string;
  /** An input without one of its fields is invalid, so shrinking keeps all of them. */
  keepKeys?: true;
  /** Shrinking an input teaches nothing, and every finding counts. */
  whole?: true;
  /** Number of texts or other parts in one input. Default 1. */
  parts?(input: Input): number;
  /** Called now and then and at the end: throws if the inputs so far have left a bad state behind. */
  check?(): Promise<void>;
  close?(): Promise<void>;
}

/** A violation that is not an error thrown by the code itself. */
export class Broken extends Error {
  override readonly name = 'Broken';
  readonly kind: 'broken' | '500' | 'slow';

  constructor(message: string, kind: Broken['kind'] = 'broken') {
    super(message);
    this.kind = kind;
  }
}

const INHERITED = new Set(Reflect.ownKeys(Object.prototype));

/** Throws if an input has changed what all objects inherit. */
export function checkPrototypes(): void {
  const keys = Reflect.ownKeys(Object.prototype);
  if (keys.length === INHERITED.size) return;
  const added = keys.filter((key) => !INHERITED.has(key)).map(String);
  throw new Broken(`Object.prototype has "${added.join('", "')}"`);
}
