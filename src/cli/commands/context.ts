import { TroupeError } from '../../base/errors.ts';
import { parseTurnId } from '../../events/index.ts';
import type { CostOptions, CostReport } from '../../library/troupe.ts';
import type { Client } from '../client/client.ts';
import { type ClientOptions, connect } from '../client/connect.ts';
import { count, number, paint, paragraph, print, printable, printJson, table } from '../render/output.ts';
import { renderDiff } from '../render/render-diff.ts';
import { renderPrompt } from '../render/render-prompt.ts';

interface ContextOptions extends ClientOptions {
  turn?: string;
  step?: number;
  against?: string;
  cost?: boolean;
  vendor?: NonNullable<CostOptions['vendor']>;
}

/** An agent in a conversation, as named on the command line. */
interface Named {
  conversation: string;
  agent: string;
}

export async function context(conversation: string, agent: string, options: ContextOptions): Promise<void> {
  const named = { conversation, agent };
  refuseContradictions(options);
  const turn = options.turn === undefined ? undefined : turnOf(options.turn, named, 'turn');
  const against = options.against === undefined ? undefined : turnOf(options.against, named, 'against');
  const needsAgents = turn === undefined || options.cost;
  const client = await connect(options, { needs: needsAgents ? 'agents' : 'names' });
  try {
    if (options.cost) await showCost(client, named, options);
    else if (against !== undefined) {
      const { step } = options;
      const found = await client.diff(against, turn ?? 'next', step === undefined ? {} : { stepB: step });
      show(found, renderDiff, options);
    } else if (turn !== undefined) show(await client.promptOf(turn, options.step), renderPrompt, options);
    else show(await client.prompt(conversation, agent), renderPrompt, options);
  } catch (error) {
    throw withTurns(error, conversation);
  } finally {
    await client.close();
  }
}

async function showCost(
  client: Client,
  { conversation, agent }: Named,
  options: ContextOptions,
): Promise<void> {
  const progress = createProgress(`rendering the prompts of @${agent.replace(/^@/, '')} again`);
  try {
    const { vendor } = options;
    show(await client.cost(conversation, agent, { vendor, onTurn: progress.update }), renderCost, options);
  } finally {
    progress.end();
  }
}

function show<T>(found: T, render: (found: T) => string, { json }: ContextOptions): void {
  if (json) printJson(found);
  else print(render(found));
}

function refuseContradictions({ turn, step, against, cost }: ContextOptions): void {
  if (cost && (turn !== undefined || against !== undefined)) {
    throw invalid('cost', '--cost covers all turns: leave out --turn and --against');
  }
  if (step !== undefined && turn === undefined) {
    throw invalid('turn', '--step selects a step of a past turn: name the turn with --turn');
  }
}

/** A bare number counts the agent's turns in the conversation. Throws for a turn of another agent. */
function turnOf(text: string, { conversation, agent }: Named, option: string): string {
  const name = agent.replace(/^@/, '');
  if (/^\d+$/.test(text)) return `${conversation}:${name}:${text}`;
  const parts = parseTurnId(text);
  // A pubkey may name the agent, too; only the troupe can resolve it.
  const isOther = parts?.agent !== name && !/^[0-9a-f]{64}$/.test(name);
  if (!parts || (parts.conversation === conversation && !isOther)) return text;
  const whose = `@${parts.agent} in ${parts.conversation}`;
  throw invalid(
    option,
    `turn ${text} belongs to ${whose}: name a turn of @${name} in ${conversation}, such as --${option} 1, or ask for ${whose}`,
  );
}

/** Adds to the error the command that lists turns. */
function withTurns(error: unknown, conversation: string): unknown {
  if (!(error instanceof TroupeError) || error.code !== 'turn_unknown') return error;
  const message = `${error.message}; "troupe ls ${conversation}" shows the last turn of each agent`;
  return new TroupeError(error.code, message, error.data, { cause: error });
}

function invalid(path: string, message: string): TroupeError {
  return new TroupeError('event_invalid', message, { path });
}

/** Reports on stderr the progress of work that takes longer than a second; only once if stderr is not a terminal. */
interface Progress {
  update: (what: string) => void;
  end: () => void;
}

const PATIENCE_MS = 1_000;
const EVERY_MS = 200;

function createProgress(task: string): Progress {
  const { stderr } = process;
  let next = Date.now() + PATIENCE_MS;
  let told = 0;

  function update(what: string): void {
    if (Date.now() < next || (told > 0 && !stderr.isTTY)) return;
    next = Date.now() + EVERY_MS;
    told += 1;
    const line = what === '' ? `${task}…` : `${task}: ${what}`;
    stderr.write(stderr.isTTY ? `\r\u001b[K${line}` : `${line}\n`);
  }

  const timer = setTimeout(() => update(''), PATIENCE_MS);
  return {
    update,
    end() {
      clearTimeout(timer);
      if (told > 0 && stderr.isTTY) stderr.write('\r\u001b[K');
    },
  };
}

const CAUSE_INDENT = 4;

/** The cost of an agent's prompts as text, call by call. */
function renderCost(report: CostReport): string {
  const { agent, conversation, vendor, model, rows } = report;
  const heading = paint(
    'bold',
    `@${agent} in ${conversation}: prompts in the cache of ${vendor} (${printable(model)})`,
  );
  if (rows.length === 0) return `${heading}\nno finished turn has a recorded prompt`;
  return [heading, renderRows(report), renderTotal(report)].join('\n\n');
}

type Row = CostReport['rows'][number];

/** Each row is followed by the reasons why it is not cheaper. */
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
    ...(verified ? [] : ['the log no longer reproduces the bytes that were sent']),
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
