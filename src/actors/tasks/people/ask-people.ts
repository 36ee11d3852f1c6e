import { type QuestionBody, SYSTEM_AUTHOR } from '../../../events/index.ts';
import { openTasks } from '../../../machines/task-book.ts';
import type { RequestOf } from '../../../tools/tool.ts';
import { ownDraft, type TurnRun } from '../../turn/turn-run.ts';
import { type CallPlace, type CarriedOut, effectsOf, refused } from '../call-effects.ts';
import { abortTask, opening } from '../end-task.ts';
import { deadlineOf } from '../open-delegation.ts';
import { taskIdOf } from '../task-id.ts';

/** A question to people stands in the log of the conversation; the first answer of somebody who may answer ends it. */
export function askPeople(run: TurnRun, request: RequestOf<'question'>, at: CallPlace): CarriedOut {
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
    text: `${question} is asked. ${wait ? 'You are woken with the answer.' : 'The answer comes when somebody gives one.'}`,
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
