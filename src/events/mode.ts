import * as z from 'zod';

/** What a conversation is used for at present. A change of it is an event and resets nothing. */
export const Mode = z.enum(['chat', 'agent', 'run']);
export type Mode = z.infer<typeof Mode>;

/** A run of a workflow, named by whoever drives it. */
export const RunId = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._@:-]{0,127}$/, 'a run id is 1 to 128 of A-Z a-z 0-9 . _ @ : -');

/** One that Troupe drives: its id is part of the ids of events, which are told apart at ':'. */
export const WorkflowRunId = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9_@-]{0,127}$/,
    'the id of a run of a workflow is 1 to 128 of A-Z a-z 0-9 _ @ -',
  );
