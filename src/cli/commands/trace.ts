import type { TurnTrace } from '../../library/troupe.ts';
import { type ClientOptions, connect } from '../client/connect.ts';
import { describeEvent } from '../render/reply-printer.ts';
import { clip, number, paint, print, printJson, screenWidth, table } from '../render/output.ts';

export async function trace(turn: string, options: ClientOptions): Promise<void> {
  const client = await connect(options, { needs: 'data' });
  try {
    const found = await client.trace(turn);
    if (options.json) printJson(found);
    else print(renderTrace(found));
  } finally {
    await client.close();
  }
}

const STATUS_STYLE = { done: 'green', running: 'cyan', failed: 'red', aborted: 'yellow' } as const;

function renderTrace({ turn, status, events, prompts, cost }: TurnTrace): string {
  const start = events[0]?.at ?? 0;
  const rows = events.map((event) => [
    paint('dim', `${event.seq}`),
    paint('dim', `+${number(event.at - start)} ms`),
    event.kind,
    clip(describeEvent(event), Math.max(30, screenWidth() - 40)),
  ]);
  return [
    `${paint('bold', turn)} ${paint(STATUS_STYLE[status], status)}${cost === null ? '' : `, ${dollars(cost)}`}`,
    table(rows, [0, 1]),
    renderPrompts(prompts),
  ].join('\n\n');
}

function renderPrompts(prompts: TurnTrace['prompts']): string {
  if (prompts.length === 0) return paint('dim', 'no prompt was sent');
  const heads = ['step', 'model', 'sent', 'messages', 'tokens', 'cost', 'layers'];
  const rows = prompts.map(({ step, model, mode, count, tokens, layers, cost }) => [
    `${step}`,
    model,
    mode,
    `${count}`,
    number(tokens.total),
    cost === null ? '-' : dollars(cost),
    layers.map((layer) => `${layer.name} ${number(layer.tokens)}`).join(', '),
  ]);
  return table([heads.map((head) => paint('dim', head)), ...rows], [0, 3, 4, 5]);
}

function dollars(cost: number): string {
  return `$${cost.toFixed(cost < 0.01 ? 6 : 4)}`;
}
