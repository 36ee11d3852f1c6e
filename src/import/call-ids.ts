import { createHash } from 'node:crypto';

/** Schema limit of a call id, less the room for a `-<number>` suffix. */
const MAX_ID = 240;

type OpenCall = { id: string; name: string; step: number };

/**
 * The call ids of one conversation: each handed out once, and the results brought to the calls they answer.
 * 1. A foreign id that was used before, by a call or an orphan result, gets a `-2`, `-3`, … suffix.
 * 2. A result answers the oldest open call of the newest step with its foreign id.
 */
export class CallIds {
  readonly #used = new Set<string>();
  readonly #copies = new Map<string, number>();
  readonly #open = new Map<string, OpenCall[]>();
  #step = 0;

  beginStep(): void {
    this.#step += 1;
  }

  /** The id for a new call, and the earlier calls with the same foreign id that can get no result any more. */
  open(foreign: string, name: string): { id: string; lost: OpenCall[] } {
    const id = this.unique(foreign);
    const known = this.#open.get(foreign) ?? [];
    const lost = known.filter((call) => call.step !== this.#step);
    const kept = known.filter((call) => call.step === this.#step);
    this.#open.set(foreign, [...kept, { id, name, step: this.#step }]);
    return { id, lost };
  }

  close(foreign: string): OpenCall | null {
    const calls = this.#open.get(foreign);
    const call = calls?.shift() ?? null;
    if (calls?.length === 0) this.#open.delete(foreign);
    return call;
  }

  /** For results that name no call: the oldest open call, of that tool if it is known. */
  closeByName(name: string | null): OpenCall | null {
    for (const [foreign, calls] of this.#open) {
      if (name === null || calls[0]?.name === name) return this.close(foreign);
    }
    return null;
  }

  unique(foreign: string): string {
    const base = foreign.length <= MAX_ID ? foreign : shortened(foreign);
    let id = base;
    let copies = this.#copies.get(base) ?? 1;
    while (this.#used.has(id)) id = `${base}-${(copies += 1)}`;
    this.#copies.set(base, copies);
    this.#used.add(id);
    return id;
  }

  stillOpen(): OpenCall[] {
    return [...this.#open.values()].flat();
  }
}

function shortened(foreign: string): string {
  const hash = createHash('sha256').update(foreign).digest('hex').slice(0, 16);
  return `${foreign.slice(0, MAX_ID - 17)}-${hash}`;
}
