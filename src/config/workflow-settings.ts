import * as z from 'zod';
import { AgentId, RunStep } from '../events/index.ts';
import { COMPLETE_STEP } from '../machines/run-book.ts';

/** What a conversation can be taken through, one step after the other. */
const WorkflowSettings = z.strictObject({
  id: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, 'a workflow id is 1 to 64 of A-Z a-z 0-9 _ -'),
  /** What a run is for that does not say. */
  directive: z.string().min(1).optional(),
  steps: z.array(RunStep).min(1, 'a workflow needs at least one step').max(200),
});
export const Workflows = z.array(WorkflowSettings).max(1_000);

const Text = z.string().optional().catch(undefined);
const Sketch = z
  .array(
    z
      .object({
        id: Text,
        steps: z.array(z.object({ id: Text, agent: Text, completeWhen: Text }).catch({})).catch([]),
      })
      .catch({ steps: [] }),
  )
  .catch([]);

/** An id that is used twice, an agent that nobody is, a step that its agent could not end. */
export function* workflowProblems(
  settings: unknown,
  toolsOf: (agent: string) => readonly (string | undefined)[] | null,
): Generator<{ path: PropertyKey[]; message: string }> {
  const workflows = Sketch.parse(settings);
  for (const [index, { id, steps }] of workflows.entries()) {
    const path = ['workflows', index];
    if (id !== undefined && workflows.findIndex((each) => each.id === id) !== index)
      yield { path: [...path, 'id'], message: `"${id}" is used twice` };
    for (const [at, step] of steps.entries()) {
      const where = [...path, 'steps', at];
      if (step.id !== undefined && steps.findIndex((each) => each.id === step.id) !== at)
        yield { path: [...where, 'id'], message: `"${step.id}" is used twice` };
      if (!AgentId.safeParse(step.agent).success) continue;
      const tools = toolsOf(step.agent ?? '');
      if (!tools) yield { path: [...where, 'agent'], message: `there is no agent "${step.agent}"` };
      else if (step.completeWhen === 'tool' && !tools.includes(COMPLETE_STEP)) {
        const message = `@${step.agent} could not say that it is complete: give it the tool ${COMPLETE_STEP}`;
        yield { path: [...where, 'completeWhen'], message };
      }
    }
  }
}
