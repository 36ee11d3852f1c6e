/** Note on an event of which some or all text is erased; `[erased]` stands in place of that text. */
export const ERASED = 'words erased';
