/** Names of the built-in tools. */
export type BuiltinTool =
  | 'handoff'
  | 'read_artifact'
  | 'delegate'
  | 'ask'
  | 'follow_up'
  | 'cancel_task'
  | 'remind'
  | 'todo'
  | 'no_response'
  | 'complete_step'
  | 'fetch';
