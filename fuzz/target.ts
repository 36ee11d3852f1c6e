import type { Random } from '../sim/random.ts';

/** What is fuzzed. An input is a plain value: it can be printed, made again from its seed, and made smaller. */
export interface Target<Input = unknown> {
  name: string;
  make(random: Random): Input;
  /** `accepted`, or the code with which the input was refused. Throws whatever must not happen. */
  run(input: Input): Promise<string> | string;
  /** An input without one of its fields is none: when it is made smaller, all stay. */
  keepKeys?: true;
  /** Nothing is learnt by making an input smaller, and every finding counts. */
  whole?: true;
  /** Texts or other parts in one input, where it has several. Default 1. */
  parts?(input: Input): number;
  /** Called now and then and at the end: throws where the inputs so far have left something wrong behind. */
  check?(): Promise<void>;
  close?(): Promise<void>;
}

/** Something that must not happen, other than an error out of the code itself. */
export class Broken extends Error {
  override readonly name = 'Broken';
  readonly kind: 'broken' | '500' | 'slow';

  constructor(message: string, kind: Broken['kind'] = 'broken') {
    super(message);
    this.kind = kind;
  }
}

const INHERITED = new Set(Reflect.ownKeys(Object.prototype));

/** Refuses to go on where an input has reached what all objects inherit from. */
export function checkPrototypes(): void {
  const keys = Reflect.ownKeys(Object.prototype);
  if (keys.length === INHERITED.size) return;
  const added = keys.filter((key) => !INHERITED.has(key)).map(String);
  throw new Broken(`Object.prototype has "${added.join('", "')}"`);
}
