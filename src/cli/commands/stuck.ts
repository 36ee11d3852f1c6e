import type { StuckLine, StuckReport } from '../../library/troupe.ts';
import { type ClientOptions, connect } from '../client/connect.ts';
import { clip, number, paint, print, printJson } from '../render/output.ts';

const MOST_TEXT = 80;

interface StuckOptions extends ClientOptions {
  after?: number;
}

/** Prints what does not go on, and what can be done about it. */
export async function stuck({ after, ...options }: StuckOptions): Promise<void> {
  const client = await connect(options, { needs: 'data' });
  try {
    const report = await client.stuck({ afterMs: after === undefined ? undefined : after * 1_000 });
    if (options.json) printJson(report);
    else for (const line of stuckLines(report)) print(line);
  } finally {
    await client.close();
  }
}

export function stuckLines({ stuck: lines, total, awayServers = [] }: StuckReport): string[] {
  if (total + awayServers.length === 0) return [paint('dim', 'nothing is stuck')];
  const more = total - lines.length;
  return [
    ...awayServers.flatMap(({ server, agents }) => [
      `the tool server ${server} is away: ${agents.map((agent) => `@${agent}`).join(', ')} without its tools`,
      paint('dim', '  to find the cause: troupe doctor'),
    ]),
    ...lines.flatMap((line) => [
      `@${line.agent} in ${line.conversation} ${line.words}`,
      ...line.actions.map((action) => paint('dim', `  ${adviceOf(action, line)}`)),
    ]),
    ...(more > 0 ? [paint('dim', `and ${number(more)} more`)] : []),
  ];
}

function adviceOf(
  action: StuckLine['actions'][number],
  { conversation, agent, turn, reason }: StuckLine,
): string {
  switch (action) {
    case 'abort':
      return `to stop it: POST /api/commands ${JSON.stringify({ command: 'abort', turn })}`;
    case 'raise_limit':
      return `to let more run at once: ${limitOf(reason)} in the agents file`;
    case 'answer':
    case 'decide':
      return personAdvice(conversation, reason);
    case 'define':
      return `to go on: define @${agent} in the agents file again, or tell its work to another agent`;
    case 'check_provider':
      return 'to find the cause: does the provider answer?';
  }
}

function personAdvice(conversation: string, reason: StuckLine['reason']): string {
  if (reason.kind !== 'unanswered') return '';
  const { asks, task, text } = reason;
  const said = clip(text, MOST_TEXT);
  if (asks === 'question') return `${said}: troupe answer ${conversation} ${task} TEXT`;
  return `${said}: troupe approve ${conversation} ${task}, or deny`;
}

function limitOf(reason: StuckLine['reason']): string {
  if (reason.kind === 'slot_full')
    return `limits.providers.${reason.provider ?? '<name>'}.turns, limits.turnsPerTenant`;
  return 'limits.providers.<name>.callsPerMinute';
}
