/**
 * What only some companies use. A file belongs to a feature if its path fits, so what a feature needs elsewhere is named
 * here too.
 */
export const FEATURES: Readonly<Record<string, RegExp>> = {
  budgets: /^actors\/features\/budget\//,
  checkpoints: /(?:^|\/)checkpoints\//,
  compaction: /(?:^|\/)compaction\/|^context\/(?:extract|summary)\/|^machines\/compaction/,
  memory: /(?:^|\/)memory\/|^context\/retrieve\//,
  reruns: /(?:^|\/)reruns\//,
  schedules: /(?:^|\/)schedules?\/|^actors\/conversations\/delete-conversation\.ts$/,
  sessions: /(?:^|\/)sessions\/|^context\/session\.ts$/,
  steering: /(?:^|\/)steering\//,
  supervision: /(?:^|\/)supervision\//,
  tasks: /(?:^|\/)tasks\/|^machines\/task-|^actors\/log\/tasks\.ts$|^actors\/actor\/task-trees\.ts$/,
  workflows: /(?:^|\/)workflows\/|^machines\/(?:run-fold|run-drafts|workflow)\.ts$/,
};

/** Files of features among these, by feature. */
export function featureFiles(files: Iterable<string>): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const file of files)
    for (const [feature, fits] of Object.entries(FEATURES))
      if (fits.test(file)) found.set(feature, [...(found.get(feature) ?? []), file]);
  return found;
}
