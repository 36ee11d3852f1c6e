import { addPerson, createPeople, DEFAULT_POLICY, type People, summarySteps } from '../../context/index.ts';
import type { AgentId, CompactionBody, Event } from '../../events/index.ts';
import type { ConversationKey } from '../../store/store.ts';
import { inSlices } from '../engine/in-slices.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import type { ImportedSummary } from '../turn/feature-types.ts';
import { readPages } from '../log/read-pages.ts';
import { compactionDraft, readCompaction } from './make-compaction.ts';

/** Size as rendered: the summary, people's words, and what was found without a model. Small enough for most windows. */
const RECORDED_TOKENS = 8_000;

/**
 * Logs an imported summary as a compaction, which agents adopt like one of their own: with people's words and the facts of
 * the covered events, which the recorded text may lack. False if the covered events are not the first ones of the
 * conversation: the summary would then hide others.
 */
export async function recordSummary(
  deps: EngineDeps,
  log: ConversationKey,
  summary: ImportedSummary,
  { by, at }: { by: AgentId; at: number },
): Promise<boolean> {
  const { number, last, upTo } = summary;
  if (await readCompaction(deps.store, log, number)) return true;
  const previous = number === 1 ? null : await readCompaction(deps.store, log, number - 1);
  const covered = await deps.store.readById(log, last);
  if (covered?.seq !== upTo || (number > 1 && !previous)) return false;
  const body = await composed(deps, log, summary, { by, previous: previous?.body ?? null });
  if (!body) return false;
  const draft = { ...compactionDraft(number), to: [], body };
  await deps.log.append(log, [draft], { at: () => at, wake: false, spares: false });
  return true;
}

async function composed(
  deps: EngineDeps,
  log: ConversationKey,
  { number, upTo, text, filesRead, filesModified }: ImportedSummary,
  { by, previous }: { by: AgentId; previous: CompactionBody | null },
): Promise<CompactionBody | null> {
  const { events, people } = await readCovered(deps, log, upTo, previous?.upTo ?? 0);
  const before = events.reduce((sum, { tokens }) => sum + tokens, previous?.tokens.after ?? 0);
  const steps = summarySteps({
    number,
    upTo,
    reason: 'over_budget',
    by,
    // A short conversation may have a longer summary. It is logged all the same.
    before: Math.max(before, RECORDED_TOKENS + 1),
    budget: RECORDED_TOKENS,
    events,
    previous,
    policy: DEFAULT_POLICY,
    secret: deps.secretOf({ ...log, agent: by }),
    people,
    count: deps.countTokens,
    trusted: deps.trust ?? null,
    text,
  });
  const body = await inSlices(deps.clock, steps);
  if (!body) return null;
  const { facts, tokens } = body;
  return {
    ...body,
    facts: {
      ...facts,
      filesRead: [...new Set([...facts.filesRead, ...filesRead])],
      filesModified: [...new Set([...facts.filesModified, ...filesModified])],
    },
    tokens: { ...tokens, before },
  };
}

/** The events since the previous compaction, and the people of the whole conversation so far. */
async function readCovered(
  deps: EngineDeps,
  log: ConversationKey,
  upTo: number,
  after: number,
): Promise<{ events: Event[]; people: People }> {
  const events: Event[] = [];
  const people = createPeople();
  for await (const page of readPages(deps.store, log, { after: 0, upTo })) {
    for (const event of page) {
      if (event.kind !== 'notice' && event.author.kind === 'user') addPerson(people, event.author, event.seq);
      if (event.seq > after) events.push(event);
    }
  }
  return { events, people };
}
