import { sentPrompt } from '../src/library/inspect/prompts.ts';
import { createRegistry } from '../src/actors/actor/registry.ts';
import { DEFAULT_TENANT, type PromptReceipt } from '../src/events/index.ts';
import { createStore } from '../src/store/create-store.ts';
import { createDocumentDriver } from '../src/store/documents/document-driver.ts';
import { createMemoryDocuments } from './memory-documents.ts';
import { newSessionMemory } from '../packages/testing/src/fake-sessions.ts';
import { companyOf } from './company.ts';
import { SECRET } from './process.ts';
import type { World } from './world.ts';

/** Maximum number of prompts checked per schedule: each is rendered from the first event on. */
const MOST_PROMPTS = 4;

/**
 * P1: a prompt sent after a compaction, or by an agent that began with a checkpoint, can be rendered again from the log,
 * byte for byte, whichever processes began the turn, decided on the compaction, wrote the checkpoint and ended the turn.
 */
export async function checkPrompts(world: World): Promise<string[]> {
  const quiet = { random: world.random, sleep: () => Promise.resolve() };
  const gate = <T>(_: string, work: () => T) => Promise.resolve(work());
  const store = createStore(createDocumentDriver(createMemoryDocuments({ data: world.data, gate }), quiet));
  const deps: Parameters<typeof sentPrompt>[0] = {
    store,
    log: store,
    clock: { sleep: quiet.sleep, monotonic: () => 0 },
    agents: companyOf({
      random: world.random,
      ledger: {},
      act: (_, work) => Promise.resolve(work()),
      sleep: () => Promise.resolve(),
      isCalm: () => true,
      leaseMs: 0,
      deadlines: false,
      memory: newSessionMemory(),
      machine: '',
      rewinds: true,
      isAlive: () => true,
      asked: () => undefined,
    }),
    registry: createRegistry({ secretOf: () => SECRET }),
    secretOf: () => SECRET,
  };
  const found: string[] = [];
  const prompts = [...compacted(world).slice(0, MOST_PROMPTS), ...restored(world).slice(-MOST_PROMPTS)];
  for (const { turn, step } of prompts) {
    const { verified } = await sentPrompt(deps, DEFAULT_TENANT, turn ?? '', step);
    if (!verified) found.push(`P1 ${turn} step ${step}: its prompt cannot be rendered from the log`);
  }
  return found;
}

/** Receipts of ended turns whose view had been compacted or steered. */
function compacted({ data, figures }: World): PromptReceipt[] {
  const steered = new Set<string | null>();
  for (const { bySeq } of data.logs.values())
    for (const { kind, turn } of bySeq.values()) if (kind === 'turn.steered') steered.add(turn);
  const receipts = receiptsOf(data).filter(({ turn, cuts }) => cuts.length > 0 || steered.has(turn));
  figures.compacted += receipts.length;
  return receipts;
}

/** Receipts of ended turns of agents that began with a checkpoint at some time. */
function restored({ data, restored: actors }: World): PromptReceipt[] {
  if (actors.size === 0) return [];
  return receiptsOf(data).filter(({ turn }) => actors.has(turn?.slice(0, turn.lastIndexOf(':')) ?? ''));
}

/** Receipts of ended turns. */
function receiptsOf(data: World['data']): PromptReceipt[] {
  const ended = new Set<string | null>();
  for (const { bySeq } of data.logs.values())
    for (const { kind, turn } of bySeq.values()) if (kind === 'turn.done') ended.add(turn);
  return [...data.entries.values()]
    .filter(({ namespace }) => namespace === 'prompt')
    .map(({ data: text }) => JSON.parse(text) as PromptReceipt)
    .filter(({ turn }) => ended.has(turn));
}
