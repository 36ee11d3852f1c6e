import { TroupeError } from '../../base/errors.ts';
import { type AgentId, type ApprovalRequestedBody, isExactInteger, parseExact } from '../../events/index.ts';
import { checkInTime } from '../../tools/run-tool.ts';
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
  const asked = parsed(body.args);
  const text = JSON.stringify(withDigits(args, asked));
  if (text.length > MAX_ARGS) throw invalid(`have ${text.length} characters; at most ${MAX_ARGS} are taken`);
  // Without the spaces that a model may write. Arguments that cannot be read are like no others.
  if (asked !== null && text === JSON.stringify(asked)) return undefined;
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

function parsed(args: string): unknown {
  try {
    return parseExact(args.trim() || '{}');
  } catch {
    return null; // A model may write arguments that are no JSON.
  }
}

/** Integers beyond 2^53 that the approver left alone get the digits back that the approver's program rounded. */
function withDigits(edited: unknown, asked: unknown): unknown {
  if (isExactInteger(asked)) return edited === Number(asked.rawJSON) ? asked : edited;
  if (Array.isArray(edited))
    return Array.isArray(asked) ? edited.map((each, index) => withDigits(each, asked[index])) : edited;
  if (!isRecord(edited) || !isRecord(asked)) return edited;
  return Object.fromEntries(
    Object.entries(edited).map(([key, value]) => [
      key,
      Object.hasOwn(asked, key) ? withDigits(value, asked[key]) : value,
    ]),
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function invalid(what: string): TroupeError {
  return new TroupeError('event_invalid', `args: the changed arguments ${what}`, { path: 'args' });
}
