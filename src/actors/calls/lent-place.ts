import { AsyncLocalStorage } from 'node:async_hooks';
import type { ActorAddress } from '../../events/index.ts';
import type { TurnRun } from '../turn/turn-run.ts';

/**
 * What a turn holds while its tools run: a place of its process, and a slot under the caps of concurrent turns. A tool that
 * waits for other agents lends both, because these agents may need them.
 */
export interface ToolPlace {
  readonly address: ActorAddress;
  /** Lends what the tool holds, until the returned function is called. */
  lend(): Promise<() => Promise<void>>;
}

const places = new AsyncLocalStorage<ToolPlace>();

/** One for all calls of a step: what is lent returns when none of them waits any more. */
export function createToolPlace({ deps, live, slot, lease }: TurnRun): ToolPlace {
  let waiting = 0;
  let giveBack: (() => void) | undefined;
  return {
    address: live.address,
    async lend() {
      waiting += 1;
      if (waiting === 1) {
        giveBack = deps.lendPlace?.();
        await slot.leave();
      }
      return async () => {
        waiting -= 1;
        if (waiting > 0) return;
        giveBack?.();
        await slot.regain(AbortSignal.any([lease.signal, deps.stopping]));
      };
    },
  };
}

/** Runs a tool in the place. */
export function inToolPlace<T>(place: ToolPlace, run: () => T): T {
  return places.run(place, run);
}

/** The place of the tool that runs here; undefined outside of tools. */
export function toolPlace(): ToolPlace | undefined {
  return places.getStore();
}
