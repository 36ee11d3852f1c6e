/** What stands in the place of erased words. The page reads it too, so it stands apart from the schemas. */
export const ERASED_WORDS = '[erased]';

/** Stands before each text of an event that was changed in the store, so that nobody, agents included, takes it for what was said. */
export const CHANGED_MARK = '(changed after it was stored)';
