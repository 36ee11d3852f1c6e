import { receiptOf } from '../../context/index.ts';
import { type ActorAddress, type PromptRecord, PromptReceipt } from '../../events/index.ts';
import type { Store } from '../../store/store.ts';
import { tellSilent } from './silent-server.ts';
import type { TurnRun } from './turn-run.ts';

/** Silence of a model after which its prompt is stored for readers, ms. Shorter calls cost no write. */
const SILENT_MS = 500;
/** Silence after which operators are told, ms. */
const LONG_SILENT_MS = 60_000;

type Watched = Pick<TurnRun, 'deps' | 'live' | 'lease' | 'meanwhile' | 'runtime'>;

/**
 * Makes the prompt of a call readable while the model is silent. The receipt of the step cannot do that: it says that the
 * prompt was heard, and a turn that is resumed before may still take in messages. This is a copy beside the log, under a key
 * of its own, which goes when the call ends. Nothing waits for it, and nothing of the turn depends on it.
 */
export function watchSilence(run: Watched, prompt: PromptRecord): Silence {
  const { deps, live, lease, meanwhile } = run;
  const over = new AbortController();
  let isHeard = false;
  const { fence } = lease.record;
  const key = `${keysOf(live.address)}${fence}.${prompt.step}.${meanwhile.rounds}`;

  async function store(): Promise<void> {
    await deps.clock.sleep(SILENT_MS, over.signal);
    if (over.signal.aborted) return;
    const before = await deps.store.derivedKeys(live.address, keysOf(live.address));
    await deps.store.putDerived(live.address, key, JSON.stringify(receiptOf(prompt)), deps.clock.now());
    // Left by a process that died.
    await deps.store.removeDerived(live.address, before);
    await deps.clock.sleep(LONG_SILENT_MS - SILENT_MS, over.signal);
    if (!over.signal.aborted && !isHeard) tellSilent(run, LONG_SILENT_MS);
    await new Promise((ended) => {
      if (over.signal.aborted) ended(null);
      else over.signal.addEventListener('abort', ended, { once: true });
    });
    // The store may be closing. What stays is removed by the next one.
    if (!deps.stopping.aborted) await deps.store.removeDerived(live.address, [key]);
  }

  store().catch((error: unknown) => deps.onWarning(error, `prompt of ${prompt.turn}`));
  return {
    heard: () => void (isHeard = true),
    end: () => over.abort('ended'),
  };
}

export interface Silence {
  /** The model has sent something. */
  heard(): void;
  /** The call has ended. */
  end(): void;
}

/** The receipt of the prompt that an agent's model has been sent and has not answered with a word. Null: there is none. */
export async function readUnheard(
  store: Pick<Store, 'derivedKeys' | 'readDerived'>,
  address: ActorAddress,
): Promise<PromptReceipt | null> {
  const keys = await store.derivedKeys(address, keysOf(address));
  const texts = await store.readDerived(address, keys.slice(-1));
  const [text] = texts;
  return text ? PromptReceipt.parse(JSON.parse(text)) : null;
}

function keysOf({ agent }: Pick<ActorAddress, 'agent'>): string {
  return `unheard/${agent}/`;
}
