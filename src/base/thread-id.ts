import { createHash } from 'node:crypto';

/** The thread of a task is named `<stem of its root>.<task>`. The stem is the root, shortened if it is long. */
const THREAD = /^(.+)\.(d-[0-9a-f]{12})$/;
const LONGEST_STEM = 100;
/** Number of characters of the root with which a shortened stem begins. */
export const STEM_KEPT = LONGEST_STEM - 9;

/** The id of a task's thread, named after the root conversation, however deep the task is. */
export function threadId(root: string, task: string): string {
  return `${stemOf(root)}.${task}`;
}

/** The parts of an id that has the form of a thread's, else null. People may choose ids of this form, too. */
export function partsOfThread(id: string): { stem: string; task: string } | null {
  const [, stem, task] = THREAD.exec(id) ?? [];
  return stem === undefined || task === undefined ? null : { stem, task };
}

/** Whether a conversation is a thread of another one, or of the root that both are threads of. */
export function isThreadOf(thread: string, conversation: string): boolean {
  const stem = partsOfThread(thread)?.stem;
  const own = partsOfThread(conversation)?.stem ?? stemOf(conversation);
  return stem === own && thread !== conversation;
}

/** The beginning of the ids of its threads. */
export function stemOf(root: string): string {
  if (root.length <= LONGEST_STEM) return root;
  const hash = createHash('sha256').update(root).digest('hex').slice(0, 8);
  return `${root.slice(0, STEM_KEPT)}.${hash}`;
}
