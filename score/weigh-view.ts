import type { AgentId } from '../src/events/index.ts';
import { viewOf } from '../test/support/log-player.ts';
import { longLog } from './long-log.ts';
import { promptFor } from './replay.ts';

/** Memory of the long log's view in a process without other work; one line of JSON. */
export interface ViewReport {
  chain: string;
  /** Bytes of the messages of the prompt. */
  textBytes: number;
  /** Heap freed with the view; its events were freed before. */
  heldBytes: number;
}

const AGENT = 'assistant' as AgentId;

function heap(): number {
  for (let times = 0; times < 4; times++) globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

/** As JSON, like rows of the store, so that no text of an event is shared with anything that stays. */
const stored = JSON.stringify(await longLog());

function cachedView() {
  return viewOf(AGENT, JSON.parse(stored) as Parameters<typeof viewOf>[1]);
}

const { chain } = promptFor({ view: cachedView(), agent: AGENT, step: 0 });
let view: ReturnType<typeof cachedView> | null = cachedView();
const held = heap();
const textBytes = view.bytes;
view = null;
const report: ViewReport = { chain, textBytes, heldBytes: held - heap() };
console.log(JSON.stringify(report));
