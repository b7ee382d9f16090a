"""Every check of the suite for stores catches a store that breaks its rule."""

import logging
from collections.abc import Iterator

import pytest

from sidecar.conformance import kit
from sidecar.conformance.kit import run, run_check
from sidecar.conformance.store import SUITE, providing
from tests.conformance.broken_stores import BROKEN
from tests.conformance.kept_store import KeptPlace

CHECKS = {check.name: check for check in SUITE}

CAUGHT = {
    "append/messages_come_back_byte_for_byte_in_order": "folds_white_space_in_bodies",
    "append/positions_run_from_one_without_gaps_over_several_writes": "tells_positions_from_zero",
    "append/every_generated_id_is_unique_and_finds_its_message": "makes_up_one_id_for_all",
    "append/ids_of_the_host_are_kept": "ignores_ids_of_the_host",
    "append/a_known_message_id_is_not_stored_again": "tells_positions_from_zero",
    "append/a_message_id_repeated_within_one_write_is_stored_once": "stores_doubles_again",
    "append/a_known_inner_id_is_not_stored_again": "ignores_inner_ids",
    "append/the_message_id_counts_before_the_inner_id": "asks_inner_ids_first",
    "append/messages_with_different_host_ids_are_no_duplicates_despite_one_inner_id": (
        "takes_inner_ids_for_ids"
    ),
    "append/a_generated_id_sent_back_by_the_host_is_recognised": "forgets_the_ids_it_made_up",
    "append/a_host_id_that_looks_like_a_future_generated_id_is_never_generated": (
        "makes_up_ids_that_the_host_has_taken"
    ),
    "append/host_ids_that_resemble_generated_ids_are_ordinary": "reads_any_digits_as_a_number_of_its_own",
    "append/a_time_stamp_of_the_host_is_kept_and_the_time_of_receipt_stands_in": "stamps_with_its_own_time",
    "append/roles_and_heartbeats_come_back": "knows_five_roles",
    "append/an_advancement_key_takes_effect_once": "takes_every_key_for_new",
    "append/a_refused_append_does_not_use_up_its_key": "uses_up_the_key_of_a_refused_append",
    "append/a_key_recorded_without_messages_counts_for_a_later_append": "keeps_two_lists_of_keys",
    "append/a_session_of_another_dialect_is_refused": "raises_an_error_of_its_own",
    "append/no_session_is_created_unless_wanted": "makes_every_session",
    "append/an_append_without_messages_creates_an_empty_session": "makes_no_empty_session",
    "append/a_session_belongs_to_the_first_agent_that_uses_it": "binds_no_agent",
    "append/namespaces_keep_sessions_of_one_name_apart": "knows_one_namespace",
    "append/the_latest_binding_of_a_session_key_wins": "keeps_the_first_binding_of_a_key",
    "append/writes_that_are_refused_leave_those_around_them_alone": (
        "fails_what_was_queued_with_a_refused_write"
    ),
    "turns/messages_before_the_first_user_message_are_in_turn_one": "opens_a_turn_for_every_user_message",
    "turns/turns_go_on_over_several_writes": "begins_turns_anew_with_every_write",
    "turns/a_heartbeat_opens_no_turn": "opens_turns_for_heartbeats",
    "turns/a_name_given_by_the_host_is_the_turns_id": "ignores_names_of_turns",
    "turns/another_name_opens_a_turn_even_without_a_user_message": "lets_only_user_messages_open_named_turns",
    "turns/a_host_may_use_our_own_names": "takes_its_own_names_of_turns_for_strange",
    "turns/a_name_on_a_heartbeat_opens_no_turn": "opens_named_turns_for_heartbeats",
    "turns/turn_numbers_are_reused_after_truncation": "marks_no_opener",
    "turns/truncation_to_before_the_first_user_message_lets_the_next_be_turn_one": (
        "takes_turn_one_for_opened"
    ),
    "turns/truncation_within_turn_one_remembers_that_it_was_opened": "takes_turn_one_for_unopened",
    "turns/truncation_brings_the_name_of_the_newest_turn_back": "forgets_the_name_of_the_turn_at_truncation",
    "turns/the_start_of_a_turn_is_found": "finds_turns_one_message_late",
    "insert/a_message_goes_after_the_position_it_names": "appends_what_it_should_have_put_in",
    "insert/positions_mean_the_order_before_the_write": "counts_places_while_it_inserts",
    "insert/ids_stay_with_their_messages": "renumbers_what_moves",
    "insert/an_inserted_message_joins_the_turn_it_follows": "lets_inserted_messages_join_the_next_turn",
    "insert/inserting_after_the_last_message_opens_no_turn": "opens_turns_behind_the_last_message",
    "insert/the_first_message_may_name_a_place_too": "refuses_a_place_in_an_empty_session",
    "insert/the_revision_rises_where_messages_move": "keeps_the_revision_when_messages_move",
    "insert/duplicates_are_recognised_and_get_their_new_position": "tells_doubles_their_old_position",
    "insert/duplicates_by_inner_id_within_a_write_follow_the_same_rule": (
        "lets_inner_ids_decide_among_inserted_messages"
    ),
    "insert/a_missing_place_is_refused_without_effect": "puts_everything_at_the_end",
    "insert/a_place_in_a_missing_session_creates_no_session": "moves_a_place_that_is_not_there",
    "insert/summaries_follow_the_messages_they_cover": "leaves_summaries_where_they_were",
    "insert/facts_stay_with_their_messages": "leaves_facts_at_their_positions",
    "insert/insertions_into_a_parent_leave_its_fork_alone": "inserts_into_the_forks_too",
    "insert/insertions_into_a_fork_leave_its_parent_alone": "inserts_into_the_parent_of_a_fork",
    "insert/ids_are_not_used_again_after_insertion_and_truncation": "keeps_the_first_message_for_ever",
    "erase/truncation_removes_the_messages_after_one": "truncates_the_named_message_too",
    "erase/truncation_without_a_message_removes_all": "leaves_turns_as_they_were_at_truncation",
    "erase/truncation_after_the_last_message_changes_nothing": "raises_the_revision_for_nothing",
    "erase/ids_of_removed_messages_never_come_again": "truncates_nothing",
    "erase/a_host_id_may_be_used_again_after_its_message_was_removed": "remembers_ids_of_removed_messages",
    "erase/truncation_raises_the_revision_and_removes_summaries_of_removed_messages": (
        "keeps_summaries_at_truncation"
    ),
    "erase/truncation_at_an_unknown_message_is_refused": "takes_an_unknown_message_for_the_last",
    "erase/another_agent_can_neither_truncate_nor_delete": "lets_every_agent_change_a_session",
    "erase/a_refused_write_binds_no_agent": "binds_the_agent_before_it_refuses",
    "erase/deletion_erases_everything_under_the_name": "leaves_what_belongs_to_a_deleted_session",
    "erase/deleting_a_missing_session_returns_false": "tells_that_everything_was_deleted",
    "erase/settings_of_an_agent_outlive_a_session_of_the_same_name": (
        "deletes_the_settings_of_an_agent_of_the_same_name"
    ),
    "erase/a_recreated_session_is_a_new_one": "deletes_nothing",
    "expire/a_long_session_is_gone_after_the_first_step_and_erased_in_several": "expires_in_sight_of_all",
    "expire/an_unfinished_erasure_comes_first_and_can_be_resumed": "forgets_what_is_being_erased",
    "expire/a_session_that_has_changed_stays": "expires_what_has_changed",
    "expire/forks_keep_what_they_share_with_an_erased_session": "expires_what_forks_share",
    "expire/idle_sessions_are_listed_longest_idle_first": "tells_the_newest_idle_session_first",
    "expire/used_bytes_follow_the_stored_data": "counts_erased_bytes_as_used",
    "fork/a_fork_starts_with_the_messages_of_its_parent": "forks_start_empty",
    "fork/a_fork_may_end_at_a_message_in_the_middle": "forks_take_the_whole_parent",
    "fork/parent_and_fork_go_their_own_ways": "forks_are_the_parent_itself",
    "fork/messages_before_the_fork_are_known_to_the_child_by_their_ids": "forks_know_all_ids_of_their_parent",
    "fork/a_later_message_of_the_parent_is_not_the_childs": "forks_know_all_ids_of_their_parent",
    "fork/an_id_generated_for_a_deleted_parent_is_still_not_the_hosts": (
        "takes_ids_that_it_made_up_for_the_hosts"
    ),
    "fork/forks_of_forks_read_through_all_of_them": "reads_one_level_of_forks",
    "fork/messages_of_a_fork_outlive_truncation_of_its_parent": "reads_one_level_of_forks",
    "fork/messages_of_forks_outlive_deletion_of_their_parent": "gives_all_that_is_shared_to_one_fork",
    "fork/deleting_every_session_of_a_family_in_turn_leaves_the_rest_whole": "forks_know_their_own_ids_alone",
    "fork/truncating_a_fork_into_the_shared_part_leaves_the_parent_alone": "truncates_the_parent_of_a_fork",
    "fork/an_empty_session_can_be_forked": "forks_no_empty_session",
    "fork/summaries_that_end_in_the_shared_part_come_along": "forks_have_no_summaries",
    "fork/state_and_settings_come_along_and_then_part": "inherits_settings_over_those_of_the_fork",
    "fork/derived_state_is_not_copied_to_a_fork": "copies_all_state_into_forks",
    "fork/a_fork_belongs_to_its_parents_agent": "forks_are_nobodys",
    "fork/forks_that_cannot_be_made_are_refused": "forks_over_what_is_there",
    "state/facts_given_with_a_message_are_kept": "forgets_facts_that_come_with_messages",
    "state/facts_are_saved_by_position": "saves_facts_one_message_too_late",
    "state/facts_for_messages_that_moved_are_dropped": "saves_facts_of_any_revision",
    "state/facts_are_saved_through_a_fork_for_all_who_share_the_message": (
        "saves_no_facts_of_shared_messages"
    ),
    "state/messages_without_facts_are_handed_out_until_they_have_them": (
        "hands_out_no_messages_without_facts"
    ),
    "state/messages_are_handed_out_again_while_nobody_has_saved_their_facts": (
        "hands_out_messages_without_facts_once"
    ),
    "state/no_more_messages_without_facts_are_handed_out_than_requested": (
        "hands_out_all_messages_without_facts"
    ),
    "state/messages_copied_for_a_fork_still_lack_their_facts": "forgets_that_copies_lack_facts",
    "state/summaries_come_by_position_and_depth": "tells_summaries_as_they_came",
    "state/summaries_come_without_texts_where_none_are_wanted": "always_tells_the_texts_of_summaries",
    "state/a_summary_takes_the_place_of_those_it_replaces": "replaces_no_summaries",
    "state/summaries_are_found_by_their_ids": "finds_summaries_of_any_id",
    "state/a_summary_of_the_same_id_is_replaced": "keeps_the_first_summary_of_an_id",
    "state/a_summary_of_an_older_revision_is_not_kept_and_replaces_nothing": (
        "adds_summaries_of_any_revision"
    ),
    "state/a_summary_makes_its_session_the_one_that_changed_last": "takes_summaries_for_no_change",
    "state/a_touched_session_is_the_one_that_changed_last": "touches_nothing",
    "state/state_is_kept_by_name_and_removed_by_saving_none": "removes_no_state",
    "state/state_of_a_deleted_session_is_not_kept_for_its_successor": "keeps_state_for_whoever_has_the_name",
    "state/settings_change_member_by_member": "replaces_settings_whole",
    "state/a_snapshot_has_what_single_reads_have": "reads_large_values_with_a_snapshot",
    "read/a_missing_session_reads_as_empty": "reads_a_session_that_is_not_there_as_an_error",
    "read/a_range_of_positions_includes_both_ends": "leaves_out_the_last_position",
    "read/messages_of_one_role_are_found_in_order": "reads_messages_newest_first",
    "read/a_session_of_one_namespace_is_not_read_from_another": "reads_from_every_namespace",
    "read/keyed_messages_distinguish_host_ids_from_generated_ones": "tells_made_up_ids_as_the_hosts",
    "read/the_head_counts_messages_and_turns": "counts_turns_from_zero",
    "read/a_read_sees_every_write_whose_done_has_run": "reads_what_was_there_a_write_before",
    "read/sessions_are_listed_newest_change_first_page_by_page": "lists_sessions_oldest_first",
    "read/a_page_that_ends_the_list_has_no_cursor": "ends_every_list_with_a_cursor",
    "read/a_list_is_of_one_namespace_or_of_all": "lists_sessions_of_every_namespace",
    "read/a_foreign_cursor_is_refused": "takes_any_text_for_a_cursor",
    "read/a_closed_store_neither_reads_nor_writes": "serves_after_it_was_closed",
    "submit/done_runs_once_for_each_write_in_the_order_of_submission": "tells_a_batch_backwards",
    "submit/done_is_never_called_before_submit_returns": "carries_out_before_submit_returns",
    "submit/a_callback_that_fails_does_not_keep_others_from_theirs": "swallows_what_callbacks_raise",
    "submit/a_withdrawn_write_has_no_effect_and_no_callback": "carries_out_what_was_withdrawn",
    "submit/a_completed_write_cannot_be_withdrawn": "withdraws_what_is_done",
    "submit/cancelling_a_waiting_task_withdraws_its_write_or_lets_it_finish": (
        "cancels_a_wait_without_its_write"
    ),
    "submit/close_finishes_submitted_writes": "drops_what_is_queued_at_close",
    "submit/writes_of_one_batch_see_each_other": "carries_out_deletions_last",
    "submit/waiting_for_a_refused_write_raises_its_error": "makes_every_session",
    "durability/messages_and_heads_are_as_they_were": "keeps_nothing",
    "durability/a_session_goes_on_where_it_ended": "begins_turns_anew_with_every_write",
    "durability/ids_of_removed_messages_never_come_again": "uses_ids_again_after_truncation",
    "durability/session_state_lasts": "takes_every_key_for_new",
    "durability/messages_without_facts_are_still_handed_out": "forgets_facts_that_come_with_messages",
    "durability/deletion_lasts": "leaves_the_bound_keys_of_a_deleted_session",
    "durability/forks_still_share_after_reopening": "takes_shared_messages_from_forks",
    "durability/everything_acknowledged_before_closing_is_there": "loses_the_last_write",
    "durability/earlier_messages_are_found": "reads_what_was_there_when_it_was_opened",
    "share/one_store_reads_writes_that_the_other_has_acknowledged": "reads_what_was_there_a_write_before",
    "share/concurrent_writes_keep_one_order_without_loss_or_duplicates": "begins_turns_anew_with_every_write",
    "share/a_session_that_both_create_at_once_is_one": "tells_positions_from_zero",
    "share/a_message_id_is_stored_once": "stores_doubles_again",
    "share/an_advancement_key_takes_effect_once": "takes_every_key_for_new",
    "share/deletion_by_one_holds_for_the_other": "uses_uids_again",
    "share/an_agent_bound_by_one_is_bound_for_the_other": "binds_no_agent",
    "share/facts_for_messages_that_the_other_has_rewritten_are_dropped": "keeps_the_revision_at_truncation",
    "share/a_fork_keeps_messages_that_the_other_store_truncates": "takes_shared_messages_from_forks",
    "share/one_store_finds_messages_of_the_other": "finds_something_where_there_is_nothing",
    "share/an_episode_is_claimed_by_one_store_only": "leases_nothing",
    "words/words_are_found_by_their_stem": "finds_words_as_they_are_written",
    "words/case_and_compatibility_forms_make_no_difference": "needs_every_word",
    "words/messages_with_all_words_come_before_those_with_some": "ranks_backwards",
    "words/rare_words_weigh_more_than_frequent_ones": "ranks_backwards",
    "words/newer_messages_come_first_among_equals": "ranks_backwards",
    "words/stop_words_do_not_count_as_long_as_there_are_others": "finds_what_was_stored_a_while_ago",
    "words/a_question_of_stop_words_alone_is_searched_as_it_is": "never_looks_for_stop_words",
    "words/chinese_japanese_and_korean_words_are_found_inside_sentences": "finds_words_as_they_are_written",
    "words/a_single_chinese_character_is_found_in_every_place_of_a_sentence": "finds_whole_words_alone",
    "words/names_and_paths_are_found_whole_and_by_their_parts": "ranks_backwards",
    "words/a_name_as_a_whole_beats_its_parts_scattered": "ranks_backwards",
    "words/odd_queries_find_nothing_and_break_nothing": "fails_for_odd_questions",
    "words/a_long_question_is_answered_by_its_significant_words": "ranks_by_the_beginning_of_a_question",
    "words/the_limit_cuts_and_the_cursor_goes_on_without_gaps_or_repeats": "begins_every_page_anew",
    "words/searching_an_empty_range_finds_nothing": "searches_the_whole_session",
    "words/new_messages_are_found_at_once": "finds_words_among_others_alone",
    "literal/a_literal_is_found_anywhere_also_inside_words": "takes_literals_for_patterns",
    "literal/a_literal_is_compared_in_one_normal_form_without_case": "finds_literals_in_their_own_case",
    "literal/parts_of_chinese_japanese_and_korean_text_are_found": "finds_ascii_alone",
    "literal/results_come_in_session_order_or_newest_first": "always_begins_with_the_oldest",
    "literal/pages_follow_each_other_while_messages_are_added": "forgets_how_far_it_came",
    "literal/a_cursor_from_before_the_session_was_rewritten_is_refused": "forgets_how_far_it_came",
    "literal/an_invalid_cursor_is_refused": "finds_nothing_in_place_of_errors",
    "literal/an_empty_literal_or_expression_is_refused": "finds_expressions_in_folded_text",
    "literal/odd_literals_are_found_where_they_are_and_break_nothing": "fails_for_odd_questions",
    "literal/an_expression_is_matched_against_the_text_as_written": "always_begins_with_the_oldest",
    "literal/an_expression_that_backtracks_elsewhere_takes_linear_time": "hangs_on_nested_repetitions",
    "literal/an_invalid_expression_is_refused": "finds_expressions_in_folded_text",
    "filters/only_positions_in_the_range_are_found": "searches_the_whole_session",
    "filters/only_the_requested_roles_are_found": "searches_every_role",
    "filters/only_messages_of_the_tool_are_found": "searches_every_tool",
    "filters/only_messages_of_the_turn_are_found": "searches_every_turn",
    "filters/only_messages_in_the_time_range_are_found": "searches_every_time",
    "filters/all_filters_apply_at_once": "searches_every_role",
    "filters/another_agent_finds_nothing_in_a_session": "searches_for_every_agent",
    "episodes/episodes_come_back_in_the_order_of_pushing_with_all_that_was_given": "forgets_keys_of_episodes",
    "episodes/buffers_of_other_engines_and_namespaces_stay_apart": "keeps_one_buffer_for_all",
    "episodes/clearing_removes_everything": "clears_nothing",
    "episodes/deletion_removes_the_named_episodes_alone_and_counts_them": (
        "counts_what_it_was_asked_to_delete"
    ),
    "episodes/row_ids_of_another_buffer_delete_nothing": "keeps_one_buffer_for_all",
    "episodes/row_ids_are_never_used_again": "uses_row_ids_again",
    "episodes/a_claimed_episode_is_claimed_by_nobody_else": "leases_nothing",
    "episodes/another_claimants_episode_is_neither_deleted_nor_cleared": "lets_everybody_drop_what_is_leased",
    "episodes/an_expired_lease_frees_its_episodes": "leases_for_ever",
    "episodes/a_claim_of_nothing_is_refused": "claims_any_number",
    "episodes/concurrent_claims_divide_the_episodes": "leases_nothing",
    "episodes/deleting_a_session_erases_its_episodes": "leaves_the_buffers_of_a_deleted_session",
    "episodes/a_closed_buffer_refuses_calls": "serves_from_a_closed_buffer",
    "episodes/episodes_and_leases_outlast_the_store": "leases_nothing",
    "injected/an_id_is_new_once": "takes_every_id_for_new",
    "injected/ids_belong_to_a_session_an_engine_and_a_namespace": "keeps_one_set_of_ids_for_all",
    "injected/clearing_forgets_the_ids_of_one_session": "clears_the_ids_of_every_session",
    "injected/single_ids_can_be_forgotten": "clears_all_ids_of_a_session_at_once",
    "injected/any_text_can_be_an_id": "normalizes_ids",
    "injected/a_fork_knows_what_was_injected_before_it": "forks_know_nothing_of_what_was_injected",
    "injected/deleting_a_session_forgets_its_ids": "leaves_the_belongings_of_no_session",
    "injected/ids_outlast_the_store": "takes_every_id_for_new",
}
"""By check: what is wrong with a store that it catches."""

SHORT_S = 1.0
"""A broken store that hangs is found out sooner than by the check's own limit."""


@pytest.fixture(autouse=True)
def no_noise(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Broken stores complain in the log, and may not let go of what they wait for."""
    monkeypatch.setattr(kit, "_GRACE_S", 0.05)
    with caplog.at_level(logging.CRITICAL + 1):
        yield


@pytest.mark.parametrize(("check", "broken"), CAUGHT.items(), ids=CAUGHT)
@pytest.mark.filterwarnings("ignore")
def test_a_check_catches_a_store_that_breaks_its_rule(
    check: str, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    BROKEN[broken](monkeypatch)
    result = run(run_check(CHECKS[check]._replace(limit_s=SHORT_S), providing(KeptPlace)))
    assert result.outcome == "failed", f"a store that {broken} is not caught"
    assert result.message


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_lets_a_sound_store_pass(check: str) -> None:
    result = run(run_check(CHECKS[check], providing(KeptPlace)))
    assert result.outcome == "passed", f"{result.message}\n{result.trace}"


def test_every_check_is_in_the_table() -> None:
    assert list(CAUGHT) == list(CHECKS)


def test_every_broken_store_is_in_the_table() -> None:
    assert set(CAUGHT.values()) == set(BROKEN)
