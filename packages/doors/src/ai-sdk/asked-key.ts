/** Id of a question or an approval for clients: with its conversation, if that is a thread of a task. */
export function askedKey(task: string, at: string, conversation: string): string {
  return at === conversation ? task : `${at}/${task}`;
}

/** The conversation and the task of such an id. Neither has a slash. */
export function readAskedKey(key: string, conversation: string): { conversation: string; task: string } {
  const slash = key.lastIndexOf('/');
  return slash < 0
    ? { conversation, task: key }
    : { conversation: key.slice(0, slash), task: key.slice(slash + 1) };
}
