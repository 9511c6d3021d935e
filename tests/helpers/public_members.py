"""The public members of every public class, as `help()` shows them; test_help.py holds the classes to it."""

MEMBERS = {
    "AllocationProgram": """
        assumptions bounded constraints costs dim features free kind labels lower n_arms n_multipliers n_rows
        n_targets noise_variance origin owners plays_what_it_compares radii row_owners shown target_arms target_name
        targets upper
    """,
    "Allocator": "solve",
    "Audit": """
        bandit evidence excess exploration n optimal_pulls over over_explored over_explored_at plot pulls regret
        regret_ratio runs solution table to_frame to_latex under under_explored under_explored_at
    """,
    "BatchSolution": """
        allocation arms assumptions bandits certified gap gaps levels lower multipliers not_compiled reasons
        solution status to_frame to_latex tol upper value
    """,
    "Comparison": """
        confidence difference first lower median_difference p_value paired plot runs second standard_error times
        to_frame to_latex upper verdict wins
    """,
    "ContextualBandit": """
        arms arms_in_memory assumptions contexts dim gaps labels means n_arms n_contexts noise_variance optimal_arms
        pair rank sizes theta tie_tolerance to_frame to_latex variance_of_each variances weights
    """,
    "Enclosure": "assumptions gap lower midpoint notes plot precision problems tied_gaps to_frame to_latex upper",
    "FiniteTimeBound": """
        alternatives bandit given n parameters program regrets save sentence to_frame to_latex value verify weights
    """,
    "Hardness": """
        alternative alternatives assumptions bandit best_arm best_arm_time compute confusing constant evidence
        gap_derivatives geometry gradient informative label labels leave_one_out optimism plot price_of_optimism
        proven sensitivity solution status to_frame to_html to_latex ucb_constant ucb_ratio warnings with_arm
        without
    """,
    "LinearBandit": """
        arms arms_in_memory assumptions check_unchanged dim gap_max gap_min gaps labels means n_arms noise_variance
        optimal_arms plot rank suboptimal_arms theta tie_tolerance to_frame to_latex variance_of_each variances
    """,
    "OracleAllocation": "allocation arms gap_min gaps how labels lower oracle_calls plot to_frame to_latex upper",
    "OracleSpanner": "C arms dim functionals labels oracle_calls swaps to_frame to_latex",
    "Progress": "alive gap iteration lower method seconds upper",
    "Schedule": """
        allocation check complete document follow free_arms from_solution horizon labels length losses missing notes
        order played plot pulls pulls_at regret regret_at required resume rounding runs scale solution to_csv
        to_frame to_json to_latex total_regret wanted
    """,
    "SimulationResult": """
        bandit conditions final_regret horizon mean notes parameters phase_at phase_lengths phases plot policy pulls
        pulls_at pulls_at_times quantiles regret runs save seed standard_error times to_frame to_latex
    """,
    "Solution": """
        allocation answer_arms assumptions binding binding_names constraint_multipliers coordinates gap labels lower method multipliers
        optimal_arms plot program save stats status support to_frame to_latex tol upper value verify
    """,
    "Spanner": "C coefficients dim indices plot swaps to_frame to_latex",
    "Status": "CERTIFIED CONDITIONAL FAILED INACCURATE",
    "StudyResult": """
        assumptions certified computed conditional counts damaged failed inaccurate path plot reasons rows seconds
        spec summary table to_frame to_latex
    """,
    "StudySpec": """
        canonical design document from_dict from_toml method n_instances name parameters point quantities
        row_gigabytes row_seconds source tol width
    """,
    "arms.ArmStore": "array check_unchanged rows scan shape",
    "arms.DaskArms": "array check_unchanged gathered rows scan shape",
    "arms.ListedArms": "array changed check_unchanged rows scan shape",
    "constants.Constant": """
        belongs_to brief group instance name place printed program quantity remark source text wording
    """,
    "constants.Finding": "difference verdict",
    "constants.Number": "digits exact half_unit value",
    "constants.Proven": "constant finding solution",
    "constants.Shares": "digits partial rounding weights",
    "constants.Verdict": "AGREES DIFFERS OTHER_INSTANCE ROUNDING UNPRINTED",
    "graphs.GraphArms": "arms bandit edges labels plot semi_bandit source theta to_frame to_latex",
    "instances.Family": "build closed_form name parameters summary",
    "instances.Parameter": "annotation count default index",
    "programs.AllocationProgram": """
        assumptions bounded constraints costs dim features free kind labels lower n_arms n_multipliers n_rows
        n_targets noise_variance origin owners plays_what_it_compares radii row_owners shown target_arms target_name
        targets upper
    """,
    "settings.Setting": "default meaning name",
}
