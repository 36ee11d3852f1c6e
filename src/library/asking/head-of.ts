import { TroupeError } from '../../base/errors.ts';

/** Seq of the last event, from a page of events; 0 if the conversation does not exist. */
export async function headOf(page: Promise<{ head: number }>): Promise<number> {
  try {
    return (await page).head;
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'conversation_unknown') return 0;
    throw error;
  }
}
