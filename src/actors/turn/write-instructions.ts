import { baselineDrift } from '../../context/index.ts';
import { TroupeError } from '../../errors.ts';
import { type ActorAddress, agentAuthor, type BaselineBody, type Mode } from '../../events/index.ts';
import type { AgentRuntime, WrittenInstructions } from '../engine/agent-runtime.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';

/** Time that a function has for its text, ms. */
const DEADLINE_MS = 10_000;
const MAX_LENGTH = 100_000;

type Deps = Pick<EngineDeps, 'store' | 'clock' | 'redaction' | 'app'>;

/**
 * The runtime as it is now: its files, and the instructions that a function of the application writes. The function is
 * asked when a baseline is made. Between two baselines its text is the one in the baseline, whatever it would say now.
 */
export async function presentRuntime(
  deps: Deps,
  address: ActorAddress,
  known: AgentRuntime,
  { frozen, mode }: { frozen: BaselineBody | null; mode: Mode | null },
): Promise<AgentRuntime> {
  const present = known.readBaseline ? { ...known, baseline: await known.readBaseline() } : known;
  const { written } = present;
  if (!written) return present;
  const hash = frozen?.layers.find(({ name }) => name === 'persona')?.sources?.['instructions'];
  const kept = hash === undefined ? null : await deps.store.readBody(address.tenant, hash);
  // In chat mode no instructions are part of the baseline.
  const unchanged = { ...present, baseline: written.baseline(kept ?? '') };
  if (frozen && baselineDrift(frozen, present.profile, unchanged.baseline, mode) === null) return unchanged;
  return { ...present, baseline: written.baseline(await textOf(deps, address, present, written)) };
}

/** Throws `config_invalid`, which makes the agent fail until it is resumed. */
async function textOf(
  { clock, redaction, app }: Deps,
  { tenant, conversation, agent }: ActorAddress,
  { profile }: AgentRuntime,
  { write }: WrittenInstructions,
): Promise<string> {
  const over = new AbortController();
  const wrong = (why: string, cause?: unknown) =>
    new TroupeError(
      'config_invalid',
      `instructions of @${agent}: the function ${why}; mend it, and resume the agent`,
      { agent, field: 'instructions' },
      { cause },
    );
  const late = clock.sleep(DEADLINE_MS, over.signal).then(() => {
    throw wrong(`took longer than ${DEADLINE_MS} ms`);
  });
  late.catch(() => undefined); // also when it has lost the race
  try {
    const text: unknown = await Promise.race([asked(), late]);
    if (typeof text !== 'string') throw wrong(`gave ${text === null ? 'null' : typeof text}, not a text`);
    if (text.length > MAX_LENGTH)
      throw wrong(`gave ${text.length} characters; at most ${MAX_LENGTH} are taken`);
    const where = { kind: 'baseline', author: agentAuthor(profile) } as const;
    return redaction?.text(text, where) ?? text.toWellFormed();
  } finally {
    over.abort();
  }

  async function asked(): Promise<unknown> {
    try {
      return await write({ tenant, conversation, agent, app });
    } catch (cause) {
      throw wrong(`failed: ${cause instanceof Error ? cause.message : String(cause)}`, cause);
    }
  }
}
