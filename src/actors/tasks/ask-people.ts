import type { Clock } from '../../base/clock.ts';
import { hashText } from '../../context/index.ts';
import {
  type ApprovalRequestedBody,
  type Event,
  type QuestionBody,
  SYSTEM_AUTHOR,
  type ToolCall,
} from '../../events/index.ts';
import { checkInTime } from '../../tools/run-tool.ts';
import type { Approval, Tool, RequestOf } from '../../tools/tool.ts';
import { ownDraft, type TurnRun } from '../turn/turn-run.ts';
import { type CallEffects, type CallPlace, type AppliedRequest, effectsOf, refused } from './call-effects.ts';
import { abortTask, opening, taskIdOf } from './task-events.ts';
import { deadlineOf } from './open-delegation.ts';
import { openTasks, type TaskBook } from '../../machines/task-book.ts';

/** Whether a call has to wait for a person. An approved call is the first of its turn, with unchanged arguments. */
export async function mustWait(
  { turn, step, deps, lease }: TurnRun,
  tool: Tool | undefined,
  call: ToolCall,
): Promise<boolean> {
  if (!tool?.needsApproval) return false;
  const isApproved =
    step === 0 &&
    (turn.approved ?? []).some(
      ({ id, name, args }) => id === call.id && name === call.name && args === call.args,
    );
  return (
    !isApproved &&
    (await applies(tool, tool.needsApproval, call, { clock: deps.clock, signal: lease.signal }))
  );
}

/** Whether the approval rule covers the call. The tool itself refuses invalid arguments. */
async function applies(
  tool: Tool,
  approval: Approval,
  call: ToolCall,
  within: { clock: Clock; signal: AbortSignal },
): Promise<boolean> {
  const when =
    typeof approval === 'function' ? approval : typeof approval === 'object' ? approval.when : undefined;
  if (!when) return approval !== false;
  try {
    const checked = await checkInTime(tool, JSON.parse(call.args.trim() || '{}'), within);
    return !checked || !('value' in checked) || when(checked.value as never);
  } catch {
    // Neither unreadable arguments nor a condition that throws may let a call through.
    return true;
  }
}

export function requestApproval(
  run: TurnRun,
  tool: Tool,
  call: ToolCall,
  at: CallPlace,
): { outcome: 'waiting'; text: string; effects: CallEffects } {
  const { live, deps, turn } = run;
  const { agent, conversation } = live.address;
  const request = taskIdOf('a', turn.id, at);
  const settings = typeof tool.needsApproval === 'object' ? tool.needsApproval : {};
  const deadline = deadlineOf(run, settings.deadlineMs ?? deps.limits.approvalMs);
  const body: ApprovalRequestedBody = {
    request,
    tool: call.name,
    args: call.args,
    argsHash: hashText(call.args),
    by: [...(settings.by ?? [])],
    deadline,
  };
  const task = opening({ kind: 'approval', body, id: request }, agent);
  return {
    outcome: 'waiting',
    text: `[not run yet: a person has to approve this call first (${request}). You are woken with the decision; if it is approved, the call is made for you.]`,
    effects: effectsOf({
      events: [{ ...ownDraft(run, `asked:${at.step}.${at.index}`), kind: 'approval.requested', body }],
      timers: [
        {
          at: deadline,
          task: request,
          posts: abortTask({ conversation }, task, SYSTEM_AUTHOR, 'nobody decided in time'),
        },
      ],
      ends: true,
    }),
  };
}

/** The approved calls, exactly as requested or as the approver changed them. Each decision is an input of one turn only. */
export function approvedCalls(tasks: TaskBook, inputs: readonly Event[]): ToolCall[] {
  return inputs.flatMap((event) => {
    if (event.kind !== 'approval.decided' || event.body.outcome !== 'approved') return [];
    const task = tasks.tasks.get(event.body.request);
    if (task?.kind !== 'approval' || task.end?.seq !== event.seq) return [];
    const { request, tool, args, argsHash } = task.body;
    if (hashText(args) !== argsHash) return [];
    const { args: edited = args, argsHash: editedHash = argsHash } = event.body;
    return hashText(edited) === editedHash ? [{ id: request, name: tool, args: edited }] : [];
  });
}

/** Asks people a question in the log of the conversation. The first answer of an entitled person ends it. `said`: more for the model. */
export function askPeople(
  run: TurnRun,
  request: RequestOf<'question'>,
  at: CallPlace,
  said = '',
): AppliedRequest {
  const { live, deps, turn } = run;
  const { agent, conversation } = live.address;
  const twin = openTasks(live.tasks, agent).find(
    (task) => task.kind === 'question' && task.body.text.trim() === request.text.trim(),
  );
  if (twin) return refused(`this is asked already (${twin.id}): wait for the answer`);
  const question = taskIdOf('q', turn.id, at);
  const deadline = deadlineOf(run, request.deadlineMs ?? deps.limits.questionMs);
  const { text, by, choices, join, wait } = request;
  const body: QuestionBody = {
    question,
    text,
    by,
    ...(choices && { choices }),
    group: `${turn.id}/${join}`,
    join,
    deadline,
  };
  const task = opening({ kind: 'question', body, id: question }, agent);
  return {
    outcome: 'done',
    text: [
      `${question} is asked. ${wait ? 'You are woken with the answer.' : 'The answer comes when somebody gives one.'}`,
      said,
    ]
      .filter(Boolean)
      .join(' '),
    effects: effectsOf({
      events: [{ ...ownDraft(run, `asked:${at.step}.${at.index}`), kind: 'question', body }],
      timers: [
        {
          at: deadline,
          task: question,
          posts: abortTask({ conversation }, task, SYSTEM_AUTHOR, 'nobody answered in time'),
        },
      ],
      ends: wait,
    }),
  };
}
