import { featureFiles } from './features.ts';
import { COUNTED, filesOf, type Report, type SceneReport } from './report.ts';

/** Counts that may only fall. `off`: files of features that are off, of the plain turn alone. */
type Count = (typeof COUNTED)[number] | 'off';

/** What is stored: the counts of each scene, which functions ran in which scenes, and why a count was raised. */
export interface TurnRecord {
  node: string;
  scenes: { [scene: string]: { [count in Count]?: number } };
  raised: Raise[];
  /** Scenes of each function, by file and name. */
  functions: Map<string, string[]>;
}

interface Raise {
  scene: string;
  count: Count;
  from: number;
  to: number;
  reason: string;
}

const LABELS: { [count in Count]?: string } = { off: 'files of features that are off' };

export const SAVE = 'npm run weigh:turn -- --save';
const RAISE = `${SAVE} --raise "why it is needed"`;

/** Whether the code is as light as the record says, and the record as low as the code: a line for each difference. */
export function compare(record: TurnRecord, { node, scenes }: Report): string[] {
  const lines: string[] = [];
  const isSameNode = node === record.node;
  for (const scene of scenes) {
    const [former, now] = [record.scenes[scene.scene] ?? {}, countsOf(scene)];
    for (const [count, value = 0] of entries(now)) {
      const most = former[count] ?? 0;
      // How often V8 resumes a function is its own business.
      if (value === most || (count === 'calls' && !isSameNode)) continue;
      const verdict = value > most ? 'more than' : 'fewer than';
      lines.push(`${scene.scene}: ${value} ${LABELS[count] ?? count}, ${verdict} the ${most} of the record`);
    }
    const known = functionsOf(record, scene.scene);
    const { added, gone } = changed(known, Object.keys(scene.list));
    lines.push(...added.map((name) => `${scene.scene}: runs ${name}, which is not in the record`));
    lines.push(...gone.map((name) => `${scene.scene}: no longer runs ${name}`));
  }
  if (lines.length === 0) return [];
  const isMore = lines.some((line) => line.includes('more than'));
  return [
    ...lines,
    isMore ? `Make it lighter, or say why it must be heavier: ${RAISE}` : `Write the record anew: ${SAVE}`,
  ];
}

/** The record of this report. Throws if a count would rise and no reason is given. */
export function nextRecord(record: TurnRecord, report: Report, reason: string | undefined): TurnRecord {
  const raised: Raise[] = [];
  for (const scene of report.scenes)
    for (const [count, to = 0] of entries(countsOf(scene))) {
      const from = record.scenes[scene.scene]?.[count];
      if (from !== undefined && to > from)
        raised.push({ scene: scene.scene, count, from, to, reason: reason ?? '' });
    }
  if (raised.length > 0 && !reason?.trim()) {
    const list = raised.map(({ scene, count, from, to }) => `${scene}: ${count} ${from} → ${to}`);
    throw new Error(`a turn would be heavier than recorded:\n${list.join('\n')}\nIf it must be: ${RAISE}`);
  }
  const scenes = Object.fromEntries(report.scenes.map((scene) => [scene.scene, countsOf(scene)]));
  const isStill = ({ scene, count, from }: Raise) => (scenes[scene]?.[count] ?? 0) > from;
  return {
    node: report.node,
    scenes,
    // What is as low again as it was needs no reason.
    raised: [...record.raised, ...raised].filter(isStill),
    functions: scenesOfFunctions(report.scenes),
  };
}

function countsOf(scene: SceneReport): { [count in Count]?: number } {
  const counts: { [count in Count]?: number } = {};
  for (const count of COUNTED) counts[count] = scene[count];
  if (scene.scene === 'plain')
    counts.off = new Set([...featureFiles(filesOf(scene).keys()).values()].flat()).size;
  return counts;
}

function entries(counts: { [count in Count]?: number }): [Count, number | undefined][] {
  return Object.entries(counts) as [Count, number | undefined][];
}

function scenesOfFunctions(scenes: readonly SceneReport[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const { scene, list } of scenes)
    for (const name of Object.keys(list)) found.set(name, [...(found.get(name) ?? []), scene]);
  return new Map([...found].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function functionsOf({ functions }: TurnRecord, scene: string): string[] {
  return [...functions].flatMap(([name, scenes]) => (scenes.includes(scene) ? [name] : []));
}

function changed(before: readonly string[], now: readonly string[]): { added: string[]; gone: string[] } {
  const [known, present] = [new Set(before), new Set(now)];
  return {
    added: now.filter((name) => !known.has(name)),
    gone: before.filter((name) => !present.has(name)),
  };
}
