import { TroupeError } from '../../errors.ts';
import type { ApprovalRequestedBody, AgentId } from '../../events/index.ts';
import { checkInTime } from '../../tools/check-in-time.ts';
import { firstProblems } from '../../tools/schema.ts';
import type { Tool } from '../../tools/tool.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';

/** Most characters of changed arguments. */
const MAX_ARGS = 100_000;

/**
 * The text of arguments that an approver has changed; undefined if they are those of the request. Throws `event_invalid`
 * where they do not fit the tool. A process that does not have the tool, as one that opens no tool servers, cannot tell;
 * the call checks them again.
 */
export async function editedArgs(
  { agents, clock }: Pick<EngineDeps, 'clock'> & Partial<Pick<EngineDeps, 'agents'>>,
  { owner, body }: { owner: AgentId; body: ApprovalRequestedBody },
  args: Readonly<Record<string, unknown>>,
): Promise<string | undefined> {
  const text = JSON.stringify(args);
  if (text.length > MAX_ARGS) throw invalid(`have ${text.length} characters; at most ${MAX_ARGS} are taken`);
  if (text === sameText(body.args)) return undefined;
  const tool = agents?.get(owner)?.tools.get(body.tool);
  const problems = tool ? await problemsOf(tool, args, clock) : [];
  if (problems.length > 0)
    throw invalid(`do not fit the schema of ${body.tool}: ${firstProblems(problems).join('; ')}`);
  return text;
}

async function problemsOf(
  tool: Tool,
  args: Readonly<Record<string, unknown>>,
  clock: EngineDeps['clock'],
): Promise<string[]> {
  try {
    const checked = await checkInTime(tool, args, { clock });
    if (!checked) return [`the check took longer than ${tool.timeoutMs} ms`];
    return 'value' in checked ? [] : checked.problems;
  } catch (thrown) {
    return [thrown instanceof Error ? thrown.message : String(thrown)];
  }
}

/** Without the spaces that a model may write. Arguments that cannot be read are like no others. */
function sameText(args: string): string | null {
  try {
    return JSON.stringify(JSON.parse(args.trim() || '{}'));
  } catch {
    return null;
  }
}

function invalid(what: string): TroupeError {
  return new TroupeError('event_invalid', `args: the changed arguments ${what}`, { path: 'args' });
}
