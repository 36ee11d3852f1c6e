/** Replaces erased words. Apart from the schemas, because the page reads it, too. */
export const ERASED_WORDS = '[erased]';

/** Precedes each text of an event that was changed in the store: nobody, agents included, may take it for the original. */
export const CHANGED_MARK = '(changed after it was stored)';
