import { writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Store } from '../src/store/store.ts';
import { checkConversation, type ConversationRun, type Finding } from './check-conversation.ts';
import { type Counts, countConversation, noCounts } from './count-conversation.ts';
import { type History, readHistories } from './database.ts';
import type { KillRun } from './kill-run.ts';

export interface Verdict {
  findings: Finding[];
  counts: Counts;
  conversations: number;
}

/**
 * Checks everything that was stored. Writes the evidence of a finding to `dir`: the conversation with its actors,
 * posts and executions, and the faults in order.
 */
export async function judge(run: KillRun, store: Store, dir: string): Promise<Verdict> {
  const posts = Map.groupBy(run.clients.posts, ({ conversation }) => conversation);
  const executions = Map.groupBy(run.tools.executions, ({ effect }) => effect.slice(0, effect.indexOf(':')));
  const findings: Finding[] = aboutProcesses(run);
  const counts = noCounts();
  const seen = new Set<string>();

  function hold(history: History): void {
    const { conversation } = history;
    seen.add(conversation);
    const whole: ConversationRun = {
      ...history,
      posts: posts.get(conversation) ?? [],
      executions: executions.get(conversation) ?? [],
      cancelled: run.clients.cancelled.filter((turn) => turn.startsWith(`${conversation}:`)),
    };
    const found = checkConversation(whole);
    countConversation(counts, whole);
    if (found.length > 0)
      writeFileSync(path.join(dir, `${conversation}.json`), JSON.stringify(whole, null, 1));
    findings.push(...found);
  }

  for await (const history of readHistories(store)) hold(history);
  for (const conversation of new Set([...posts.keys(), ...executions.keys()])) {
    if (!seen.has(conversation)) hold({ conversation, events: [], actors: [], corrupt: [] });
  }
  if (findings.length > 0) writeFileSync(path.join(dir, 'faults.json'), JSON.stringify(run.faults, null, 1));
  return { findings, counts, conversations: seen.size };
}

/** Findings outside the logs: answers that no fault explains, and processes that ended by themselves. */
function aboutProcesses({ clients, fleet, quietAfterMs }: KillRun): Finding[] {
  const problems = [
    ...clients.misanswers.map(
      ({ what, status, body }) => `${what}: answered ${status} ${body.slice(0, 500)}`,
    ),
    ...fleet.exits.map(
      ({ process: name, role, code, log }) => `${role} ${name} ended by itself (${code}): ${log}`,
    ),
    ...(quietAfterMs === null ? ['the system did not come to rest after the faults had ended'] : []),
  ];
  return problems.map((problem) => ({ invariant: 'process', conversation: '-', problem }));
}
