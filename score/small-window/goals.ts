import type { SmallWindowFigures } from './figures.ts';

const MAX_SUMMARY_SHARE = 0.25;

export function missedGoals(figures: SmallWindowFigures): string[] {
  const { failed, prompts, keeping, compactions, adopted, summaryShare, silent } = figures;
  return [
    failed > 0 ? `${failed} turns failed` : '',
    keeping < prompts ? `${prompts - keeping} prompts lacked a demand: ${lostIn(figures)}` : '',
    compactions > 1 && adopted < compactions / 2 ? `${adopted} of ${compactions} compactions adopted` : '',
    summaryShare > MAX_SUMMARY_SHARE
      ? `requests for summaries are ${percent(summaryShare)} of all prompts`
      : '',
    silent > 0 ? `${silent} compactions knew demands and showed none` : '',
  ].filter((text) => text !== '');
}

function lostIn({ lost }: SmallWindowFigures): string {
  return Object.entries(lost)
    .map(([demand, turns]) => `"${demand}" in ${turns.length}`)
    .join(', ');
}

export function describeFigures(name: string, figures: SmallWindowFigures): string {
  const { window, turns, prompts, keeping, compactions, written, adopted } = figures;
  const { summaryShare, frontShare, memories, questions, rejected, answers, copying } = figures;
  const reasons = Object.entries(rejected).map(([why, times]) => `${times} x ${why}`);
  return [
    `${name}, window ${window}, ${turns} turns`,
    `  prompts with every demand               ${keeping} of ${prompts}`,
    `  compactions, by a model, adopted        ${compactions}, ${written}, ${adopted}`,
    `  requests for summaries, of all tokens   ${percent(summaryShare)}`,
    `  compaction in front, of a prompt        ${percent(frontShare)}`,
    `  memories, of them a person's words      ${memories}, ${questions}`,
    ...(answers > 0 ? [`  answers that copy a mark or a head        ${copying} of ${answers}`] : []),
    ...(reasons.length > 0 ? [`  not made: ${reasons.join('; ')}`] : []),
  ].join('\n');
}

function percent(share: number): string {
  return `${Math.round(share * 1_000) / 10} %`;
}
