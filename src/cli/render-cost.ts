import type { CostReport } from '../troupe.ts';
import { count, number, paint, paragraph, printable, table } from './output.ts';

const CAUSE_INDENT = 4;

/** What an agent's prompts cost, call by call, for people. */
export function renderCost(report: CostReport): string {
  const { agent, conversation, vendor, model, rows } = report;
  const heading = paint(
    'bold',
    `@${agent} in ${conversation}: prompts in the cache of ${vendor} (${printable(model)})`,
  );
  if (rows.length === 0) return `${heading}\nno prompt of a turn that has ended is known`;
  return [heading, renderRows(report), renderTotal(report)].join('\n\n');
}

type Row = CostReport['rows'][number];

/** A row, and under it why it is not as cheap as it could be. */
function renderRows({ rows }: CostReport): string {
  const heads = ['turn.step', 'input', 'read', 'written', 'fresh', 'cost', 'reported read/written'];
  const cells = rows.map(({ turn, step, input, read, written, fresh, cost, reported }) => [
    `${turn.slice(turn.lastIndexOf(':') + 1)}.${step}`,
    ...[input, read, written, fresh, Math.round(cost)].map(number),
    reported ? `${number(reported.cacheRead)}/${number(reported.cacheWrite)}` : '-',
  ]);
  const [head, ...lines] = table([heads, ...cells], [1, 2, 3, 4, 5, 6]).split('\n');
  const explained = lines.flatMap((line, index) => {
    const row = rows[index];
    return row
      ? [
          line,
          ...keyValueOf(row).map((note) => paint('yellow', paragraph('', note, { indent: CAUSE_INDENT }))),
        ]
      : [];
  });
  return [paint('dim', head ?? ''), ...explained].join('\n');
}

function keyValueOf({ broke, coldAfterMs, verified }: Row): string[] {
  return [
    ...(coldAfterMs === null ? [] : [`cold: nothing was sent for ${duration(coldAfterMs)}`]),
    ...(broke ? [`broke in ${broke.layer}${at(broke.message)}: ${printable(broke.cause)}`] : []),
    ...(verified ? [] : ['the log does not give the bytes that were sent']),
  ];
}

function at(message: number | null): string {
  return message === null ? '' : ` at message ${message}`;
}

function duration(ms: number): string {
  const minutes = ms / 60_000;
  if (minutes < 120) return `${number(Math.round(minutes))} min`;
  return `${number(Math.round(minutes / 60))} h`;
}

function renderTotal({ rows, total, reported }: CostReport): string {
  const { input, read, written, fresh, output, cost, uncached, hitRate } = total;
  const saved = uncached === 0 ? 0 : 1 - cost / uncached;
  const lines = [
    paragraph(
      'total',
      `${number(input)} input tokens in ${count(rows.length, 'call')}: ${number(read)} read (${percent(hitRate)}), ` +
        `${number(written)} written, ${number(fresh)} fresh; ${number(output)} of output`,
    ),
    paragraph(
      'cost',
      `${number(Math.round(cost))} in fresh input tokens, output included; ` +
        `${number(Math.round(uncached))} without a cache (${percent(saved)} saved)`,
    ),
  ];
  if (reported) {
    lines.push(
      paragraph(
        'reported',
        `${number(reported.input)} input tokens: ${number(reported.cacheRead)} read ` +
          `(${percent(reported.input === 0 ? 0 : reported.cacheRead / reported.input)}), ${number(reported.cacheWrite)} written`,
      ),
    );
  }
  return lines.join('\n');
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
