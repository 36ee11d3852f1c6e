import path from 'node:path';
import type { Scorecard } from './scorecard.ts';
import { quoted } from './show-run.ts';

/** As `scoreScenarios` names them: a name from a file must not lead out of its folder. */
const CONVERSATION = /^\w[\w-]{0,199}$/;

/** The data directory of a run below the folder that keeps it. */
export function folderOfRun(keep: string, conversation: string): string {
  return path.join(keep, 'runs', conversation);
}

/** Conversations of the runs whose data were kept. */
export function keptConversations({ scenarios }: Scorecard): Set<string> {
  const named = scenarios.flatMap(({ runs }) => runs.flatMap(({ conversation }) => conversation ?? []));
  return new Set(named.filter((conversation) => CONVERSATION.test(conversation)));
}

/** How a developer looks at runs whose data were kept. Null: none were. `before`: the folder of the baseline. */
export function howToShow(scores: Scorecard, folder: string = 'FOLDER', before?: string): string | null {
  if (keptConversations(scores).size === 0) return null;
  const folders = [folder, ...(before === undefined ? [] : [before])];
  return `look at the conversations: npx troupe eval show ${folders.map(quoted).join(' ')}`;
}
